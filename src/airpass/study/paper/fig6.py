"""Figure 6: training loss on MNIST against rounds, for several numbers of waveguides.

The values are not those of the paper, which are not in its text.
"""

from airpass.study.paper.curves import ALONG_AXES, MNIST, TrainingFigure, along

FIGURE = TrainingFigure(
    name="fig6",
    title="Training loss on MNIST. K = 10, N = 5, 10 dB",
    duration={"smoke": "40 seconds", "lite": "10 minutes", "paper": "three hours"},
    schemes=ALONG_AXES,
    metric="train_loss",
    scales=MNIST,
    changes={"smoke": {"rounds": 8}},
    points=along("receiver.waveguides", "M", (1, 2, 5, 8)),
    panel_per_scheme=True,
)
