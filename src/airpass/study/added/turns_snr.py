"""Test accuracy against SNR: one design for a part of the devices, and designs by turns for all of them."""

from airpass.learning import FEDAVG
from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.paper.curves import MNIST
from airpass.study.paper.schemes import BEST_ARRAY, METHODS, TURNS, best_array_at

# Those of figure 8, whose rows are shared, and one below.
SNRS_DB = (-5.0, 0.0, 5.0, 10.0, 15.0)


class TurnsFigure(AxisFigure):
    """Final accuracy on MNIST for K = 10, M = N = 5."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """An SNR each."""
        return tuple(
            Place(
                snr_db,
                scenario((10, 5, 5), snr_db, 0),
                {
                    **{name: METHODS[name] for name in (FEDAVG, "airpass-plus", TURNS, "airpass")},
                    BEST_ARRAY: best_array_at(5, 5, snr_db),
                },
            )
            for snr_db in SNRS_DB
        )


FIGURE = TurnsFigure(
    name="turns-snr",
    title="Test accuracy on MNIST against SNR, one design and by turns. K = 10, M = N = 5",
    duration={"smoke": "a minute", "lite": "a quarter of an hour", "paper": "two hours"},
    xlabel="SNR, dB",
    metrics=("test_accuracy", "selected_count"),
    training=MNIST,
)
