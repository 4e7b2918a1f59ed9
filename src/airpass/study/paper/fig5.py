"""Figure 5: test accuracy on CIFAR-10 against rounds, AirPASS and its variants.

At the paper's 10 dB nearly every scheme selects all 50 devices, so that the setting cannot tell them
apart. The panel at -4 dB, where they differ, is ours.
"""

from airpass.study.curves import CIFAR, training_figure

FIGURE = training_figure(
    "fig5",
    "Test accuracy on CIFAR-10. K = 50, M = N = 10",
    size=(50, 10, 10),
    snr_db=10.0,
    schemes=("fedavg", "airpass-plus", "airpass", "airpass-sdr-dc", "airpass-mp"),
    metric="test_accuracy",
    scales=CIFAR,
    duration={"smoke": "half a minute", "lite": "half an hour", "paper": "two days"},
    axis="radio.snr_db",
    values=(10.0, -4.0),
    unit="dB",
    letter="SNR",
    ours=(-4.0,),
    smoke_size=(12, 3, 3),
    changes={
        "smoke": {"rounds": 4, "evaluate_every": 2},
        "lite": {"rounds": 20, "evaluate_every": 4, "trials": 1},
    },
)
