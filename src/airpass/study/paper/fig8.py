"""Figure 8: training loss on MNIST against rounds, for SNR."""

from airpass.study.curves import MNIST, training_figure

FIGURE = training_figure(
    "fig8",
    "Training loss on MNIST. K = 10, M = N = 5",
    size=(10, 5, 5),
    snr_db=10.0,
    schemes=("airpass", "airpass-plus"),
    metric="train_loss",
    scales=MNIST,
    duration={"smoke": "20 seconds", "lite": "5 minutes", "paper": "a quarter of an hour"},
    axis="radio.snr_db",
    values=(0.0, 5.0, 10.0, 15.0),  # ours; the paper's are not in its text
    unit="dB",
    letter="SNR",
    panel_by="scheme",
    changes={"smoke": {"rounds": 8}},
)
