"""Figure 5: test accuracy on CIFAR-10 against rounds, AirPASS and its variants.

The panel at -4 dB is an addition, for the reason given in figure 4.
"""

from airpass.study.paper.curves import CIFAR, VARIANTS, Axis, TrainingFigure

FIGURE = TrainingFigure(
    name="fig5",
    title="Test accuracy on CIFAR-10. K = 50, M = N = 10",
    duration={"smoke": "half a minute", "lite": "half an hour", "paper": "two days"},
    schemes=VARIANTS,
    metric="test_accuracy",
    scales=CIFAR,
    changes={
        "smoke": {"rounds": 4, "evaluate_every": 2},
        "lite": {"rounds": 20, "evaluate_every": 4, "trials": 1},
    },
    size=(50, 10, 10),
    smoke_size=(12, 3, 3),
    axis=Axis("radio.snr_db", "SNR", (10.0, -4.0), "dB", added=(-4.0,)),
)
