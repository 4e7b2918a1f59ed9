"""Figure 2: test accuracy on MNIST against rounds, AirPASS and co-located arrays."""

from airpass.study.paper.curves import MNIST, WITH_ARRAYS, TrainingFigure

FIGURE = TrainingFigure(
    name="fig2",
    title="Test accuracy on MNIST. K = 10, M = N = 5, 10 dB",
    duration={"smoke": "half a minute", "lite": "6 minutes", "paper": "35 minutes"},
    schemes=WITH_ARRAYS,
    metric="test_accuracy",
    scales=MNIST,
)
