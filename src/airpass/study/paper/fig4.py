"""Figure 4: test accuracy on MNIST against rounds, AirPASS and its variants.

At the paper's 10 dB nearly every scheme selects all 50 devices, so that the setting does not separate
the schemes. Two panels in which they differ are additions: 10 dB with weights for which the error threshold
is the distortion-to-signal ratio, and -4 dB.
"""

from airpass.study.paper.curves import MNIST, PANELS, VARIANTS, TrainingFigure

FIGURE = TrainingFigure(
    name="fig4",
    title="Test accuracy on MNIST. K = 50, M = N = 10",
    duration={"smoke": "half a minute", "lite": "an hour", "paper": "four hours"},
    schemes=VARIANTS,
    metric="test_accuracy",
    scales=MNIST,
    changes={"smoke": {"rounds": 4, "evaluate_every": 2}, "paper": {"rounds": 120, "evaluate_every": 10}},
    size=(50, 10, 10),
    smoke_size=(12, 3, 3),
    points=PANELS,
)
