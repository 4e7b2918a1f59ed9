"""Figure 7: training loss on MNIST against rounds, for the number of antennas on each."""

from airpass.study.curves import MNIST, training_figure

FIGURE = training_figure(
    "fig7",
    "Training loss on MNIST. K = 10, M = 5, 10 dB",
    size=(10, 5, 5),
    snr_db=10.0,
    schemes=("airpass", "airpass-plus"),
    metric="train_loss",
    scales=MNIST,
    duration={"smoke": "20 seconds", "lite": "5 minutes", "paper": "a quarter of an hour"},
    axis="receiver.antennas",
    values=(1, 2, 5, 8),  # ours; the paper's are not in its text
    unit="",
    letter="N",
    panel_by="scheme",
    changes={"smoke": {"rounds": 8}},
)
