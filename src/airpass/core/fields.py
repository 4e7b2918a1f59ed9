"""Names and units of the fields of a scenario and of training, for the axes of figures and for tables."""

# Field of a scenario file, or train.<option>: what it is, and its unit.
FIELDS = {
    "receiver.waveguides": ("number of waveguides M", ""),
    "receiver.antennas": ("antennas per waveguide N", ""),
    "receiver.length_m": ("length of the waveguides", "m"),
    "receiver.spacing_m": ("distance between waveguides", "m"),
    "receiver.height_m": ("height of the waveguides", "m"),
    "receiver.waveguide_y_m": ("y of the waveguides", "m"),
    "receiver.feed": ("feed of the waveguides", ""),
    "receiver.min_gap_m": ("smallest gap between antennas", "m"),
    "radio.snr_db": ("SNR P₀/σ²", "dB"),
    "radio.mse_threshold": ("error threshold ε", ""),
    "radio.wavelength_m": ("wavelength λ", "m"),
    "radio.refractive_index": ("refractive index of the waveguides", ""),
    "radio.path_gain": ("path gain ξ at 1 m", ""),
    "radio.power": ("transmit power P₀", ""),
    "radio.carrier_ghz": ("carrier frequency", "GHz"),
    "radio.power_dbm": ("transmit power P₀", "dBm"),
    "radio.noise_dbm": ("noise power σ²", "dBm"),
    "radio.bandwidth_mhz": ("bandwidth", "MHz"),
    "radio.noise_figure_db": ("noise figure", "dB"),
    "devices.count": ("number of devices K", ""),
    "devices.seed": ("seed of the devices", ""),
    "devices.x_range_m": ("range of the devices in x", "m"),
    "devices.y_range_m": ("range of the devices in y", "m"),
    "devices.z_m": ("height of the devices", "m"),
    "devices.gain_range": ("range of the gains of devices", ""),
    "weights.normalisation": ("rule for the weights", ""),
    "train.dataset": ("data set", ""),
    "train.model": ("model", ""),
    "train.rounds": ("communication rounds", ""),
    "train.local_steps": ("local steps per round J", ""),
    "train.epochs": ("local epochs per round", ""),
    "train.optimiser": ("local optimiser", ""),
    "train.batch": ("mini-batch size", ""),
    "train.learning_rate": ("learning rate", ""),
    "train.evaluate_every": ("rounds between evaluations", ""),
    "train.test_images": ("test images", ""),
    "train.probe_images": ("images for the training loss", ""),
    "train.redraw_every": ("rounds between draws of the devices", ""),
    "train.partition.kind": ("split of the data", ""),
}
# Endings of names that are units.
_UNITS = {"mm": "mm", "m": "m", "s": "s", "db": "dB", "dbm": "dBm", "hz": "Hz", "mhz": "MHz", "ghz": "GHz"}


def named(field: str) -> tuple[str, str]:
    """What a field is, in words, and its unit. Fields that are not in `FIELDS` are named by their key."""
    if field in FIELDS:
        return FIELDS[field]
    section, _, key = field.rpartition(".")
    *words, last = key.split("_")
    unit = _UNITS.get(last, "") if words else ""
    name = " ".join(words if unit else [*words, last])
    owner = section.rpartition(".")[2].replace("_", " ")
    return (f"{name} ({owner})" if owner else name), unit


def with_unit(name: str, unit: str) -> str:
    """The text of an axis."""
    return f"{name}, {unit}" if unit else name
