"""Convolution, pooling and ReLU in one layer, against PyTorch's own three."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from airpass.learning.layers.conv_pool import ConvPoolReLU


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


@pytest.mark.parametrize(("channels", "filters"), [(16, 16), (16, 32), (32, 16), (48, 32)])
@pytest.mark.parametrize(("images", "side"), [(0, 4), (1, 2), (3, 14)])
@pytest.mark.parametrize("last", [False, True])
def test_many_channels_like_the_three_layers(
    channels: int, filters: int, images: int, side: int, last: bool
) -> None:
    torch.manual_seed(channels + filters + side)
    layer = ConvPoolReLU(channels, filters)
    x = torch.randn(images, channels, side, side)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x.requires_grad_()
    slopes = torch.randn(images, filters, side // 2, side // 2)
    for ours, theirs in zip(results(layer, x, slopes), results(plain(layer), x, slopes), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_whatever_the_default_type() -> None:
    layer = ConvPoolReLU(16, 16)
    x = torch.randn(1, 16, 4, 4)
    expected = layer(x)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(layer(x), expected)
    finally:
        torch.set_default_dtype(torch.float32)


# One of each path: in registers, with the sparse backward pass, by PyTorch's layers.
WAYS = [(1, 8), (16, 16), (2, 3)]


@pytest.mark.parametrize(("channels", "filters"), WAYS)
def test_the_first_of_equals_takes_the_gradient(channels: int, filters: int) -> None:
    # With weights zero all of a window equals the bias: PyTorch sends its gradient to the first place.
    layer = ConvPoolReLU(channels, filters)
    with torch.no_grad():
        layer.weight.zero_()
        assert layer.bias is not None
        layer.bias.fill_(1.0)
    x = torch.arange(16.0 * channels).reshape(1, channels, 4, 4)
    slopes = torch.ones(1, filters, 2, 2)
    ours, theirs = results(layer, x, slopes), results(plain(layer), x, slopes)
    assert torch.equal(ours[0], torch.ones(1, filters, 2, 2))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0.0, atol=0.0)


def test_equals_stay_equal_in_even_parts_of_an_image() -> None:
    # Where all channels are constant the four outputs of a window are equal, as in images with an empty
    # background: the first takes the gradient.
    torch.manual_seed(0)
    layer = ConvPoolReLU(16, 16)
    x = torch.randn(1, 16, 1, 1).expand(1, 16, 8, 8).contiguous().requires_grad_()
    slopes = torch.zeros(1, 16, 4, 4)
    slopes[:, :, 1:3, 1:3] = 1.0  # not at the borders, where the padding begins
    for one, other in zip(results(layer, x, slopes), results(plain(layer), x, slopes), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_change_before_the_backward_pass_is_noticed() -> None:
    layer = ConvPoolReLU(16, 16)
    out = layer(torch.randn(1, 16, 4, 4)).sum()
    with torch.no_grad():
        layer.weight.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize(("channels", "filters"), WAYS)
def test_nothing_passes_where_relu_cuts(channels: int, filters: int) -> None:
    layer = ConvPoolReLU(channels, filters)
    with torch.no_grad():
        layer.weight.zero_()
        assert layer.bias is not None
        layer.bias.fill_(-1.0)
    out, weights, bias = results(layer, torch.randn(2, channels, 6, 6), torch.ones(2, filters, 3, 3))
    assert not out.any()
    assert not weights.any()
    assert not bias.any()


@pytest.mark.parametrize(("channels", "filters"), WAYS)
def test_what_is_not_a_number_stays_so(channels: int, filters: int) -> None:
    layer = ConvPoolReLU(channels, filters)
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


def test_single_precision_within_autocast() -> None:
    """Where products are in bfloat16, the fused layer stays in single precision."""
    torch.manual_seed(0)
    layer, x = ConvPoolReLU(16, 16), torch.randn(2, 16, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x)
    assert found.dtype == torch.float32
    assert torch.equal(found, layer(x))
