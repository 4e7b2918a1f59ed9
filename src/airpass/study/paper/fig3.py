"""Figure 3: test accuracy on CIFAR-10 against rounds, AirPASS and co-located arrays."""

from airpass.study.paper.curves import CIFAR, WITH_ARRAYS, TrainingFigure

FIGURE = TrainingFigure(
    name="fig3",
    title="Test accuracy on CIFAR-10. K = 10, M = N = 5, 10 dB",
    duration={"smoke": "half a minute", "lite": "an hour", "paper": "four hours"},
    schemes=WITH_ARRAYS,
    metric="test_accuracy",
    scales=CIFAR,
)
