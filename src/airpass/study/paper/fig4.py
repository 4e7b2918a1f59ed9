"""Figure 4: test accuracy on MNIST against rounds, AirPASS and its variants.

At the paper's 10 dB nearly every scheme selects all 50 devices, so that the setting does not separate
the schemes. The panel at -4 dB, where they differ, is an addition.
"""

from airpass.study.paper.curves import MNIST, VARIANTS, Axis, TrainingFigure

FIGURE = TrainingFigure(
    name="fig4",
    title="Test accuracy on MNIST. K = 50, M = N = 10",
    duration={"smoke": "half a minute", "lite": "half an hour", "paper": "half an hour"},
    schemes=VARIANTS,
    metric="test_accuracy",
    scales=MNIST,
    changes={"smoke": {"rounds": 4, "evaluate_every": 2}, "paper": {"rounds": 120, "evaluate_every": 10}},
    size=(50, 10, 10),
    smoke_size=(12, 3, 3),
    axis=Axis("radio.snr_db", "SNR", (10.0, -4.0), "dB", added=(-4.0,)),
)
