"""What the judge's model costs: what is written at ``judge.price``, else what the price table says of its name."""

from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.scorers.prices import PriceTable


def priced(settings: TracegradeSettings) -> JudgeSettings:
    """Return the settings of the judge with its price, where that is known."""
    judge = settings.judge
    if judge.price is not None or not judge.model:
        return judge
    known = PriceTable(settings.prices).of(judge.model)
    if known is None:
        return judge
    price = Price(input_per_million=known.input, output_per_million=known.output)
    return judge.model_copy(update={"price": price})
