"""The exporter: stages count in plain counters, this shows them to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from otelmon.metrics.table import METRICS, Metric
from otelmon.vocabulary.labels import Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0)

Counters = Mapping[tuple[str, ...], float]
Series = dict[tuple[str, ...], float]


class Readings:
    """What one scrape sees. `counters` and `gauges` are {(metric name, label values...): value};
    `delays` are seconds, `delay_sum` and the counts per bucket of BUCKETS plus infinity."""

    def __init__(self, counters: Counters, gauges: Counters, delays: Histogram) -> None:
        self.counters, self.gauges, self.delays = counters, gauges, delays


class Histogram:
    """A histogram over BUCKETS. Used by one thread; read by others."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Add one value."""
        place = next((i for i, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        self.counts[place] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it) for each bucket."""
        sums, rows = 0, []
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            sums += count
            rows.append((bound, float(sums)))
        return rows


class Exporter(Collector):
    """Shows what `read` gives, with a zero series for every label set of `zero` (rule ids and other
    closed sets), so that the first finding of a rule is an increase and not a new series."""

    def __init__(self, read: Callable[[], Readings], zero: Mapping[str, Iterable[tuple[str, ...]]]) -> None:
        self._read = read
        self.expect(zero)
        self._labels = Labels()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def expect(self, zero: Mapping[str, Iterable[tuple[str, ...]]]) -> None:
        """Other label sets exist from now on."""
        self._zero = {name: tuple(rows) for name, rows in zero.items()}

    def text(self) -> bytes:
        """The exposition text of everything."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        seen = self._read()
        for metric in METRICS:
            if metric.kind == "histogram":
                yield self._histogram(metric, seen.delays)
            else:
                source = seen.counters if metric.kind == "counter" else seen.gauges
                yield self._family(metric, self._series(metric, source))

    def _series(self, metric: Metric, source: Counters) -> Series:
        series: Series = dict.fromkeys(self._zero.get(metric.name, () if metric.labels else ((),)), 0.0)
        for key, amount in source.items():
            values = key[1:]
            if key[0] == metric.name and len(values) == len(metric.labels):
                bound = self._labels.bound(metric.name, metric.labels, values)
                series[bound] = series.get(bound, 0) + amount
        return series

    @staticmethod
    def _family(metric: Metric, series: Series) -> CounterMetricFamily | GaugeMetricFamily:
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(f"otelmon_{metric.name}", metric.help, labels=metric.labels)
        for values, amount in sorted(series.items()):
            family.add_metric(values, amount)
        return family

    @staticmethod
    def _histogram(metric: Metric, histogram: Histogram) -> HistogramMetricFamily:
        family = HistogramMetricFamily(f"otelmon_{metric.name}", metric.help)
        family.add_metric((), buckets=histogram.cumulative(), sum_value=histogram.total)
        return family
