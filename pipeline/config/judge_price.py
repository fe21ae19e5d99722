"""What the judge's models cost: what is written beside each of them, else what the price table says of its name."""

from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.scorers.prices import PriceTable


def priced(settings: TracegradeSettings) -> JudgeSettings:
    """Return the settings of the judge with the price of each model, where that is known."""
    judge, table = settings.judge, PriceTable(settings.prices)
    models = {name: one.model_copy(update={"price": one.price or _known(table, name)}) for name, one in judge.models.items()}
    return judge.model_copy(update={"price": judge.price or _known(table, judge.model), "models": models})


def _known(table: PriceTable, model: str) -> Price | None:
    found = table.of(model) if model else None
    return None if found is None else Price(input_per_million=found.input, output_per_million=found.output)
