"""Joint descent in antenna positions and beam: the engine of `airpass-plus`.

It minimises F, a sum of Hill functions of the scores of the wanted devices (`airpass.optim.objectives`), over
all positions and the beam.

    space    what stays the same during a search: the channel, the feasible positions, the tabulated responses
    wanted   the wanted devices, packed, and their responses in single precision
    scan     where an antenna of one waveguide would be best, to first order: one scan for all its antennas
    sweep    antennas moved one by one, the beam by conjugate gradients
    descent  sweeps until F decreases little
    ascent   positions and beam together, by a quasi-Newton method
    found    a design that was found, and its rank
    chain    a first design, and kicks that improve it

Derivations and measurements: docs/science/airpass-plus.md.
"""
