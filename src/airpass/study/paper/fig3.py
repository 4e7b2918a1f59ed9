"""Figure 3: test accuracy on CIFAR-10 against rounds, AirPASS and co-located arrays."""

from airpass.study.curves import CIFAR, training_figure

FIGURE = training_figure(
    "fig3",
    "Test accuracy on CIFAR-10. K = 10, M = N = 5, 10 dB",
    size=(10, 5, 5),
    snr_db=10.0,
    schemes=("fedavg", "airpass-plus", "airpass", "mimo-mn-plus", "mimo-mn", "mimo-m"),
    metric="test_accuracy",
    scales=CIFAR,
    duration={"smoke": "half a minute", "lite": "an hour", "paper": "nine hours"},
)
