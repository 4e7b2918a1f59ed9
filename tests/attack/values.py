"""Values that no input may break at: wrong kinds, extremes, texts that a program may interpret."""

import math
from typing import Any

import numpy as np

Random = np.random.Generator

NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, -0.0, 0.5, 1e-3, 1e3, 1e-12, 1e12, 1e-99, 1e99, 1e101, 1e-300, 1e300, 5e-324, 1.7e308),
    *(math.nan, math.inf, -math.inf, 2**31, 2**63, 2**64, -(2**63), 10**9, 10**9 + 1, 10**18, 10**400),
)
TEXTS = (
    *("", " ", "x", "nan", "inf", "None", "true", "[/x]", "[bold]", "$\\frac{$", "$", "%", "{0}", "{{}}"),
    *("<script>alert(1)</script>", "&amp;", "a\nb", "a\tb", "\x1b[31mred", "\u202eabc", "名前", "é" * 300),
    *("../../x", "/", "~", "-", "--help", "a/b", "x" * 5000, "9" * 400, "9" * 5000, "[" * 5000, "\x00"),
    *("file.py:Name", ":x", "..x:y", "os:system", "airpass:nothing", "hrmc", "airpass-plus", "1e400", "1_0"),
)
OTHERS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        [],
        {},
        (),
        [[]],
        [None],
        [1, "x"],
        {"a": 1},
        1 + 2j,
        b"bytes",
        object,
        [[1], [2, 3]],
    ),
    *(
        np.array([]),
        np.array(3.0),
        np.zeros((2, 0)),
        np.array(["a"]),
        np.array([None]),
        np.zeros((1, 1, 1, 1)),
    ),
)


def pick(rng: Random, choices: Any) -> Any:
    """One of `choices`."""
    return choices[int(rng.integers(len(choices)))]


def odd_value(rng: Random) -> Any:
    """A value of any kind."""
    return pick(rng, pick(rng, (NUMBERS, NUMBERS, TEXTS, OTHERS)))


def plain_value(rng: Random) -> Any:
    """A value that a TOML or JSON file can hold."""
    kind = int(rng.integers(6))
    if kind < 3:
        return pick(rng, NUMBERS[:-1])
    if kind < 4:
        return float(10.0 ** rng.uniform(-20.0, 20.0))
    return pick(rng, TEXTS) if kind < 5 else pick(rng, (True, [], {}, [[]], [1, "x"], {"a": 1}))


def word(rng: Random) -> str:
    """A value of a flag, as text."""
    kind = int(rng.integers(4))
    if kind < 2:
        return str(pick(rng, NUMBERS))
    return pick(rng, TEXTS) if kind < 3 else repr(float(10.0 ** rng.uniform(-20.0, 20.0)))
