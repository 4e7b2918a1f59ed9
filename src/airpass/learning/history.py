"""Results of training: evaluated rounds, runs, and several runs together. PyTorch is not needed for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from airpass.aircomp import Link
from airpass.core.errors import InvalidInput
from airpass.core.results import Result
from airpass.core.types import Single
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.scenario import Scenario

if TYPE_CHECKING:
    from torch import nn

# Beginnings of the status of a run. INTERRUPTED: by the user. STOPPED: by the loss of worker processes.
DONE, DIVERGED, INTERRUPTED, STOPPED = "done", "diverged", "interrupted", "stopped"


@dataclass(frozen=True)
class Record:
    """One evaluated round. Errors and local loss are means over the rounds since the previous record.

    The model is always finite: the rounds of a run end before the one in which it diverges.
    """

    round: int
    test_accuracy: float  # NaN for regression
    test_loss: float
    train_loss: float  # of the global model on samples of all devices, eq. (1)
    local_loss: float  # of the selected devices during local training; NaN if none is, and in round 0
    selected_count: int  # in this round
    predicted_mse: float  # zero for ideal FedAvg; NaN if no device is selected
    measured_mse: float
    predicted_sdr_db: float  # of the mean errors; infinite for ideal FedAvg, NaN if no device is selected
    measured_sdr_db: float
    largest_power: float  # largest average transmit power of a device in a round, over P0; NaN for FedAvg
    seconds: float  # since the start of the run, without interruptions
    turn: int = 0  # number of the book's design in this round, from 1; 0 without turns and in round 0


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRun(Result):
    """The result of `train`, finished or interrupted.

    Parameters
    ----------
    scheme
        Name of the method that designed the link; "fedavg" without a link.
    dataset
        Name of the data set.
    devices
        Number of devices K.
    scenario
        The scenario, if known: that of the design, or the one given.
    link
        The link after the last round; None for ideal FedAvg.
    config
        Options, seed and fingerprints of everything that the result depends on.
    parameters
        Number of entries of an update: weights, and running statistics if there are any.
    history
        The evaluated rounds.
    state
        State of the global model; empty if the run was read from a file of airpass 0.1.
    finished
        Whether all rounds are done, without an interrupt.
    status
        "done", "diverged in round 3", "interrupted in round 3", or "stopped in round 3: ..." if worker
        processes were killed. After divergence, history and model are those of the last round with finite
        numbers.
    model
        The global model as a network; None if it is not known, as after reading a file (`load_into`).
    book
        The designs that the run went through by turns; None without turns.
    """

    scheme: str
    dataset: str
    devices: int
    scenario: Scenario | None
    link: Link | None
    config: Mapping[str, Any]
    parameters: int
    history: tuple[Record, ...]
    state: Single
    finished: bool
    status: str
    model: "nn.Module | None" = None
    book: Book | None = None

    @property
    def design(self) -> Design | None:
        """The link, if it is a design."""
        return self.link if isinstance(self.link, Design) else None

    @property
    def diverged(self) -> bool:
        """Whether training ended because the model became infinite or NaN."""
        return self.status.startswith(DIVERGED)

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted training."""
        return self.status.startswith(INTERRUPTED)

    @property
    def stopped(self) -> bool:
        """Whether training ended because worker processes were killed."""
        return self.status.startswith(STOPPED)

    def load_into(self, network: "nn.Module") -> "nn.Module":
        """Put the global model into a network, such as after reading a file.

        Parameters
        ----------
        network
            A network with the layers of the one that was trained. Its weights and running statistics are
            replaced.

        Returns
        -------
        torch.nn.Module
            The network, in evaluation mode.
        """
        from airpass.learning.client import FlatModel

        flat = FlatModel(network)
        if (own := sum(flat.sizes)) != self.state.size:
            raise InvalidInput(f"network: has {own} entries, the global model of the run {self.state.size}")
        flat.write(self.state)
        return network.eval()

    def __repr__(self) -> str:
        last = self.history[-1]
        accuracy = f"accuracy {100 * last.test_accuracy:.1f} %"
        outcome = f"test loss {last.test_loss:.4g}" if isnan(last.test_accuracy) else accuracy
        ended = "" if self.status == "done" else f", {self.status}"
        return f"TrainingRun({self.scheme} on {self.dataset}: {last.round} rounds, {outcome}{ended})"


class Runs(list[TrainingRun], Result):
    """Training runs of several schemes on the same devices and data: a list that can be saved and drawn."""
