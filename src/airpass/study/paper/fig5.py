"""Figure 5: test accuracy on CIFAR-10 against rounds, AirPASS and its variants.

Two panels are additions, for the reason given in figure 4. The scale "paper" has one draw and 250 rounds, as
a round trains fifty devices.
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
        "paper": {"rounds": 250, "evaluate_every": 10},
    },
    size=(50, 10, 10),
    smoke_size=(12, 3, 3),
    points=PANELS,
)
