"""Figure 8: training loss on MNIST against rounds, for several values of the SNR.

The values are not those of the paper, which are not in its text.
"""

from airpass.study.paper.curves import ALONG_AXES, MNIST, TrainingFigure, along

FIGURE = TrainingFigure(
    name="fig8",
    title="Training loss on MNIST. K = 10, M = N = 5",
    duration={"smoke": "40 seconds", "lite": "10 minutes", "paper": "80 minutes"},
    schemes=ALONG_AXES,
    metric="train_loss",
    scales=MNIST,
    changes={"smoke": {"rounds": 8}},
    points=along("radio.snr_db", "SNR", (0.0, 5.0, 10.0, 15.0), "dB"),
    panel_per_scheme=True,
)
