"""Convolution, pooling and ReLU in one layer, against PyTorch's own three."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from airpass.learning.conv_pool import ConvPoolReLU


def plain(layer: ConvPoolReLU) -> nn.Module:
    """The same by the library's layers, with the same weights."""
    convolution = nn.Conv2d(layer.in_channels, layer.out_channels, 3, padding=1)
    convolution.load_state_dict(layer.state_dict())
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.ReLU())


def results(model: nn.Module, x: torch.Tensor, slopes: torch.Tensor) -> list[torch.Tensor]:
    """Output, and the gradient of slopes * output in all that wants one."""
    wanted = [*model.parameters(), *([x] if x.requires_grad else [])]
    out = model(x)
    return [out.detach(), *torch.autograd.grad((out * slopes).sum(), wanted)]


@given(
    images=st.integers(1, 3),
    channels=st.sampled_from([1, 2, 5, 16, 32]),
    filters=st.sampled_from([1, 7, 8, 16]),
    rows=st.integers(2, 9),
    columns=st.integers(2, 9),
    inner=st.booleans(),
    last=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=60)
def test_like_the_three_layers(
    images: int, channels: int, filters: int, rows: int, columns: int, inner: bool, last: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    layer = ConvPoolReLU(channels, filters)
    x = torch.randn(images, channels, rows, columns)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x.requires_grad_(inner)
    slopes = torch.randn(images, filters, rows // 2, columns // 2)
    for ours, theirs in zip(results(layer, x, slopes), results(plain(layer), x, slopes), strict=True):
        # Sums of up to 400 products, in another order.
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 2, 16])
def test_the_first_of_equals_takes_the_gradient(channels: int) -> None:
    # With weights zero all of a window equals the bias: PyTorch sends its gradient to the first place.
    layer = ConvPoolReLU(channels, 1)
    with torch.no_grad():
        layer.weight.zero_()
        assert layer.bias is not None
        layer.bias.fill_(1.0)
    x = torch.arange(16.0 * channels).reshape(1, channels, 4, 4)
    slopes = torch.ones(1, 1, 2, 2)
    ours, theirs = results(layer, x, slopes), results(plain(layer), x, slopes)
    assert ours[0].tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0.0, atol=0.0)


def test_nothing_passes_where_relu_cuts() -> None:
    layer = ConvPoolReLU(1, 3)
    with torch.no_grad():
        layer.weight.zero_()
        assert layer.bias is not None
        layer.bias.fill_(-1.0)
    out, weights, bias = results(layer, torch.randn(2, 1, 6, 6), torch.ones(2, 3, 3, 3))
    assert not out.any()
    assert not weights.any()
    assert not bias.any()


@pytest.mark.parametrize("channels", [1, 2])
def test_what_is_not_a_number_stays_so(channels: int) -> None:
    layer = ConvPoolReLU(channels, 3)
    for row, column in ((0, 0), (2, 3), (5, 5)):
        x = torch.randn(1, channels, 6, 6)
        x[0, 0, row, column] = torch.nan
        ours, theirs = layer(x), plain(layer)(x)
        assert torch.isnan(ours).any()
        torch.testing.assert_close(ours, theirs, equal_nan=True)


def test_double_precision_goes_by_the_library() -> None:
    layer = ConvPoolReLU(1, 4).double()
    x = torch.randn(1, 1, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(layer(x), plain(layer).double()(x))
    assert torch.autograd.gradcheck(layer, (x.requires_grad_(),))
