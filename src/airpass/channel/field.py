"""What compiled loops know of a channel: the closed form of eq. (64), and a table if there is one.

Loops compute the closed form (`pass_uplink`). Other models are the closed form times a factor f_{k,m}(l)
(`factor`), which loops take from a table of cubic polynomials along the waveguides. Responses that are known
at some places only (`sampled_uplink`) replace the closed form: a table has their values. Tables are only used
to search; channels of a result are always computed from the model itself.

Without a table, `Field.factor` is None. Numba compiles a version of each kernel for every case, so that the
closed form alone costs nothing. The same holds for waveguides without segments, `Field.segments`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from airpass.channel.segments import Segments, segment_ends, segment_number
from airpass.core.types import Index, Real, Single
from airpass.kernels.jit import inlined, kernel

SMALLEST_SQUARE = 1e-30  # of a factor, below which its logarithmic derivative is left out
LARGEST_ENTRY = np.float32(32000.0)  # of tables of responses as 16-bit integers


class FactorTable(NamedTuple):
    """A factor as cubic polynomials in cells of equal length along the waveguides."""

    # c_0 to c_3 of the real part, then of the imaginary part: f = sum_i c_i t^i, with t from 0 to 1 in a
    # cell; shape (M, cells, 8, K)
    coefficients: Single
    peak: Single  # largest |f| on each waveguide, above zero; shape (M, K)
    cells_per_m: float


class SampledTable(NamedTuple):
    """Responses at given places, in place of the closed form."""

    places: Real  # positions in metres, increasing, shape (M, P)
    values: Single  # g_{k,m,n}, real and imaginary part, shape (M, P, 2, K)
    peak: Single  # largest |g_{k,m,n}| on each waveguide, above zero; shape (M, K)

    def scaled(self, scale: Real) -> "SampledTable":
        """The responses times a factor of each device, shape (K,)."""
        return self._replace(
            values=(self.values * scale).astype(np.float32), peak=(self.peak * scale).astype(np.float32)
        )


class Field(NamedTuple):
    """Arguments of the channel kernels, except antenna positions. Arrays are contiguous along devices."""

    device_x: Real  # x_k, shape (K,)
    offset_square: Real  # (y_k - y_m)^2 + (z_k - a_m)^2, shape (M, K)
    amplitude: Real  # xi gamma_k/sqrt(N), shape (K,)
    turns_per_m: float  # 1/lambda
    refractive_index: float  # i_ref
    # f_m; 1 if waveguide m extends to the right of its feed, -1 to the left, 0 to both sides; then the shares
    # of its N antennas, sqrt(N) times the amplitude that each couples into the waveguide: 1 for an equal
    # split. Shape (2 + N, M). One array, because calls count references to every array.
    feed: Real
    loss_per_m: float  # attenuation of amplitudes along the waveguide, nepers per metre
    # f_{k,m}(l), or the responses themselves; None for the closed form alone.
    factor: FactorTable | SampledTable | None = None
    segments: Segments | None = None  # f_m is the feed of the first; None for whole waveguides


@inlined
def _cell(table: FactorTable, place: float) -> tuple[int, float]:
    """The cell of a place, and its share of the cell."""
    at = place * table.cells_per_m
    cell = min(max(int(at), 0), table.coefficients.shape[1] - 1)
    return cell, at - cell


@inlined
def _value(rows: Single, t: float, k: int) -> tuple[float, float]:
    """Re f and Im f of device k; `rows` are the coefficients of a cell."""
    re = rows[0, k] + t * (rows[1, k] + t * (rows[2, k] + t * np.float64(rows[3, k])))
    im = rows[4, k] + t * (rows[5, k] + t * (rows[6, k] + t * np.float64(rows[7, k])))
    return re, im


@inlined
def _rate(rows: Single, t: float, k: int, per_m: float) -> tuple[float, float]:
    """Re and Im of (df/dl)/f of device k; zero where f is zero."""
    re, im = _value(rows, t, k)
    by_re = per_m * (rows[1, k] + t * (2.0 * rows[2, k] + t * (3.0 * rows[3, k])))
    by_im = per_m * (rows[5, k] + t * (2.0 * rows[6, k] + t * (3.0 * rows[7, k])))
    square = max(re * re + im * im, SMALLEST_SQUARE)
    return (by_re * re + by_im * im) / square, (by_im * re - by_re * im) / square


@kernel
def _modulate(table: FactorTable, place: float, waveguide: int, re: Real, im: Real) -> None:
    cell, t = _cell(table, place)
    rows = table.coefficients[waveguide, cell]
    for k in range(re.size):
        x, y = _value(rows, t, k)
        re[k], im[k] = re[k] * x - im[k] * y, re[k] * y + im[k] * x


@kernel
def _modulate_packed(
    table: FactorTable, place: float, waveguide: int, device: Index, re: Single, im: Single
) -> None:
    cell, t = _cell(table, place)
    rows = table.coefficients[waveguide, cell]
    for k in range(re.size):
        x, y = _value(rows, t, device[k])
        re[k], im[k] = np.float32(re[k] * x - im[k] * y), np.float32(re[k] * y + im[k] * x)


@kernel
def _modulate_slopes(
    table: FactorTable, place: float, waveguide: int, device: Index, slope_re: Single, slope_im: Single
) -> None:
    cell, t = _cell(table, place)
    rows = table.coefficients[waveguide, cell]
    for k in range(slope_re.size):
        x, y = _rate(rows, t, device[k], table.cells_per_m)
        slope_re[k] += np.float32(x)
        slope_im[k] += np.float32(y)


@kernel
def _modulate_one(
    table: FactorTable, place: float, waveguide: int, device: int, re: np.float32, im: np.float32
) -> tuple[np.float32, np.float32]:
    cell, t = _cell(table, place)
    x, y = _value(table.coefficients[waveguide, cell], t, device)
    per_peak = 1.0 / table.peak[waveguide, device]
    return np.float32(per_peak * (re * x - im * y)), np.float32(per_peak * (re * y + im * x))


@kernel
def _modulate_slope(
    table: FactorTable, place: float, waveguide: int, device: int, slope_re: float, slope_im: float
) -> tuple[float, float]:
    cell, t = _cell(table, place)
    x, y = _rate(table.coefficients[waveguide, cell], t, device, table.cells_per_m)
    return slope_re + x, slope_im + y


@inlined
def _place_number(table: SampledTable, place: float, waveguide: int) -> int:
    """Number of the place nearest to a position."""
    row = table.places[waveguide]
    low, high = 0, row.size - 1
    while low < high:
        middle = (low + high) // 2
        if row[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > 0 and place - row[low - 1] < row[low] - place else low


@kernel
def _look_up(table: SampledTable, place: float, waveguide: int, re: Real, im: Real) -> None:
    values = table.values[waveguide, _place_number(table, place, waveguide)]
    for k in range(re.size):
        re[k], im[k] = values[0, k], values[1, k]


@kernel
def _look_up_packed(
    table: SampledTable, place: float, waveguide: int, device: Index, re: Single, im: Single
) -> None:
    values = table.values[waveguide, _place_number(table, place, waveguide)]
    for k in range(re.size):
        re[k], im[k] = values[0, device[k]], values[1, device[k]]


@kernel
def _look_up_one(
    table: SampledTable, place: float, waveguide: int, device: int, re: np.float32, im: np.float32
) -> tuple[np.float32, np.float32]:
    values = table.values[waveguide, _place_number(table, place, waveguide)]
    per_peak = LARGEST_ENTRY / table.peak[waveguide, device]
    return per_peak * values[0, device], per_peak * values[1, device]


_segment_number, _ends = inlined(segment_number), inlined(segment_ends)


@kernel
def _segment_feed(segments: Segments, place: float, waveguide: int, feed: float) -> float:
    length = segments.length[waveguide]
    return float(feed + _segment_number(place, length, segments.parts) * length)


@kernel
def _segment_span(
    segments: Segments, place: float, waveguide: int, low: float, high: float
) -> tuple[float, float]:
    if not segments.selected:
        return low, high
    length = segments.length[waveguide]
    return _ends(_segment_number(place, length, segments.parts), length, segments.parts)


# The functions that kernels call. Their code is chosen by the type of the first argument, at compile time:
# without a table there is none. Unlike with `overload`, arguments are not counted as references then.


def _call(function: Any, result: Any) -> Any:
    """Code that calls a function of a table and other arguments."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.compile_internal(builder, function.py_func, result(*signature.args), args)

    return codegen


def _of(table: Any, factor: Any, sampled: Any) -> Any:
    """The function for the type of a table; None without a table."""
    if isinstance(table, types.NoneType):
        return None
    return sampled if table.instance_class is SampledTable else factor


def _nothing(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.get_dummy_value()


def _last(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return args[-1]


def _last_two(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.make_tuple(builder, signature.return_type, args[-2:])


def _modulate_typing(typingctx: Any, table: Any, place: Any, waveguide: Any, re: Any, im: Any) -> Any:
    chosen = _of(table, _modulate, _look_up)
    codegen = _nothing if chosen is None else _call(chosen, types.none)
    return types.none(table, place, waveguide, re, im), codegen


def _packed_typing(
    typingctx: Any, table: Any, place: Any, waveguide: Any, device: Any, re: Any, im: Any
) -> Any:
    chosen = _of(table, _modulate_packed, _look_up_packed)
    codegen = _nothing if chosen is None else _call(chosen, types.none)
    return types.none(table, place, waveguide, device, re, im), codegen


def _slopes_typing(
    typingctx: Any, table: Any, place: Any, waveguide: Any, device: Any, re: Any, im: Any
) -> Any:
    codegen = _nothing if isinstance(table, types.NoneType) else _call(_modulate_slopes, types.none)
    return types.none(table, place, waveguide, device, re, im), codegen


def _one_typing(typingctx: Any, table: Any, place: Any, waveguide: Any, device: Any, re: Any, im: Any) -> Any:
    pair = types.UniTuple(types.float32, 2)
    chosen = _of(table, _modulate_one, _look_up_one)
    codegen = _last_two if chosen is None else _call(chosen, pair)
    return pair(table, place, waveguide, device, types.float32, types.float32), codegen


def _slope_typing(
    typingctx: Any, table: Any, place: Any, waveguide: Any, device: Any, re: Any, im: Any
) -> Any:
    pair = types.UniTuple(types.float64, 2)
    codegen = _last_two if isinstance(table, types.NoneType) else _call(_modulate_slope, pair)
    return pair(table, place, waveguide, device, types.float64, types.float64), codegen


def _feed_typing(typingctx: Any, segments: Any, place: Any, waveguide: Any, feed: Any) -> Any:
    codegen = _last if isinstance(segments, types.NoneType) else _call(_segment_feed, types.float64)
    return types.float64(segments, types.float64, waveguide, types.float64), codegen


def _span_typing(typingctx: Any, segments: Any, place: Any, waveguide: Any, low: Any, high: Any) -> Any:
    pair = types.UniTuple(types.float64, 2)
    codegen = _last_two if isinstance(segments, types.NoneType) else _call(_segment_span, pair)
    return pair(segments, types.float64, waveguide, types.float64, types.float64), codegen


Table = FactorTable | SampledTable | None
# (table, place, waveguide, re, im): multiply the responses of all devices to an antenna by the factor, or
# replace them.
modulate = cast(Callable[[Table, float, int, Real, Real], None], intrinsic(_modulate_typing))
# (table, place, waveguide, device, re, im): the same in single precision, for the devices in `device`.
modulate_packed = cast(Callable[[Table, float, int, Index, Single, Single], None], intrinsic(_packed_typing))
# (table, place, waveguide, device, re, im): add (df/dl)/f to the logarithmic derivatives of these devices.
modulate_slopes = cast(Callable[[Table, float, int, Index, Single, Single], None], intrinsic(_slopes_typing))
# (table, place, waveguide, device, re, im): the response of one device times the factor over its peak; for
# sampled responses, the response over its peak, times `LARGEST_ENTRY`.
modulate_one = cast(
    Callable[[Table, float, int, int, np.float32, np.float32], tuple[np.float32, np.float32]],
    intrinsic(_one_typing),
)
# (table, place, waveguide, device, re, im): a logarithmic derivative with (df/dl)/f added.
modulate_slope = cast(
    Callable[[Table, float, int, int, float, float], tuple[float, float]],
    intrinsic(_slope_typing),
)
# (segments, place, waveguide, feed): x of the feed of a place; `feed` is that of the first segment.
segment_feed = cast(Callable[[Segments | None, float, int, float], float], intrinsic(_feed_typing))
# (segments, place, waveguide, low, high): where the antennas of a waveguide with one at `place` can be: from
# `low` to `high`, or on its segment only if one segment is selected.
segment_span = cast(
    Callable[[Segments | None, float, int, float, float], tuple[float, float]], intrinsic(_span_typing)
)
