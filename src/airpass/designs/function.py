"""Functions as design methods."""

import inspect
import time
from typing import Any

from airpass import aircomp
from airpass.core.errors import InvalidInput
from airpass.core.registry import FunctionMethod, Report
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Start, Step
from airpass.optim.ranking import rank
from airpass.scenario import Scenario

START = "start"


class FunctionDesign(FunctionMethod, DesignMethod):
    """A function (scenario, seed) that returns a layout and a beam of any norm."""

    arguments = ("scenario", "seed")
    special = (START,)

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Call the function, with a layout to start from if it has a parameter for it."""
        began = time.perf_counter()
        function = type(self).function
        more: dict[str, Any] = {}
        if START in inspect.signature(function).parameters:
            more[START] = self.layout_of(start)
        elif start is not None:
            raise InvalidInput(
                f"start_layout: {self.name} cannot use it; add a parameter start: "
                f"{self.name}(scenario, seed, start)"
            )
        returned = function(scenario, seed, **self.options, **more)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise InvalidInput(f"{self.name} returned {type(returned).__name__}: must be (layout, beam)")
        try:
            layout = scenario.checked_layout(returned[0])
        except InvalidInput as error:
            raise InvalidInput(f"{self.name} returned a wrong layout: {error}") from None
        beam = aircomp.checked_beam(returned[1], len(layout), self.name, unit=False)
        channels = scenario.channels(layout)
        effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
        count, weakest = rank(aircomp.scores(beam, effective))
        step = Step(0, count, weakest, time.perf_counter() - began, True)
        on_step(step)
        return DesignSearch(beam, channels, layout, None, (step,), "done")
