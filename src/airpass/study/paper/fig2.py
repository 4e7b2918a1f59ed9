"""Figure 2: test accuracy on MNIST against rounds, AirPASS and co-located arrays."""

from airpass.study.curves import MNIST, training_figure

FIGURE = training_figure(
    "fig2",
    "Test accuracy on MNIST. K = 10, M = N = 5, 10 dB",
    size=(10, 5, 5),
    snr_db=10.0,
    schemes=("fedavg", "airpass-plus", "airpass", "mimo-mn-plus", "mimo-mn", "mimo-m"),
    metric="test_accuracy",
    scales=MNIST,
    changes={"paper": {"trials": 7}},  # three, as the paper has them, tell little
    duration={"smoke": "half a minute", "lite": "5 minutes", "paper": "half an hour"},
)
