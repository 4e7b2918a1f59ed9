"""Figure 2: test accuracy on MNIST against rounds, AirPASS and co-located arrays."""

from airpass.study.paper.curves import ARRAYS, MNIST, TrainingFigure

FIGURE = TrainingFigure(
    name="fig2",
    title="Test accuracy on MNIST. K = 10, M = N = 5, 10 dB",
    duration={"smoke": "half a minute", "lite": "5 minutes", "paper": "half an hour"},
    schemes=ARRAYS,
    metric="test_accuracy",
    scales=MNIST,
    changes={"paper": {"trials": 7}},  # the paper's three leave wide confidence intervals
)
