"""Figure 5: test accuracy on CIFAR-10 against rounds, AirPASS and its variants.

Two panels are additions, for the reason given in figure 4. A round trains fifty devices: at the scale
"paper", mini-batches have 16 images instead of 64. A step takes 0.3 of the time, which pays for three draws.
"""

from airpass.study.paper.curves import CIFAR, PANELS, VARIANTS, TrainingFigure

FIGURE = TrainingFigure(
    name="fig5",
    title="Test accuracy on CIFAR-10. K = 50, M = N = 10",
    duration={"smoke": "half a minute", "lite": "an hour", "paper": "five hours"},
    schemes=VARIANTS,
    metric="test_accuracy",
    scales=CIFAR,
    changes={
        "smoke": {"rounds": 4, "evaluate_every": 2},
        "lite": {"rounds": 20, "evaluate_every": 4},
        "paper": {"rounds": 300, "evaluate_every": 20, "batch": 16},
    },
    size=(50, 10, 10),
    smoke_size=(12, 3, 3),
    points=PANELS,
)
