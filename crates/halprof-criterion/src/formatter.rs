//! How criterion writes numbers of events.

use criterion::Throughput;
use criterion::measurement::ValueFormatter;

/// The names of an event in units.
struct Units {
    /// The name for the driver.
    event: &'static str,
    /// The event, and its thousands, millions and billions.
    plain: [&'static str; 4],
    per_bit: &'static str,
    per_byte: &'static str,
    per_element: &'static str,
}

macro_rules! units {
    ($event:literal, $unit:literal) => {
        Units {
            event: $event,
            plain: [$unit, concat!("K ", $unit), concat!("M ", $unit), concat!("G ", $unit)],
            per_bit: concat!($unit, "/bit"),
            per_byte: concat!($unit, "/byte"),
            per_element: concat!($unit, "/elem"),
        }
    };
}

/// Units must be static, so events without a row here are just events.
static UNITS: [Units; 6] = [
    units!("instructions", "instr"),
    units!("cycles", "cycles"),
    units!("branches", "branches"),
    units!("branch-misses", "br.misses"),
    units!("cache-misses", "misses"),
    units!("cache-references", "refs"),
];
static OTHER: Units = units!("", "events");

/// Writes numbers of one event.
pub struct EventFormatter(&'static Units);

impl EventFormatter {
    /// Returns the formatter of an event.
    pub fn of(event: &str) -> Self {
        Self(UNITS.iter().find(|units| units.event == event).unwrap_or(&OTHER))
    }
}

impl ValueFormatter for EventFormatter {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let [ones, thousands, millions, billions] = self.0.plain;
        let (unit, factor) = match typical {
            ..1e4 => (ones, 1.0),
            1e4..1e7 => (thousands, 1e-3),
            1e7..1e10 => (millions, 1e-6),
            _ => (billions, 1e-9),
        };
        for value in values {
            *value *= factor;
        }
        unit
    }

    #[expect(clippy::cast_precision_loss, reason = "criterion calculates with f64")]
    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (number, unit) = match *throughput {
            Throughput::Bits(number) => (number, self.0.per_bit),
            Throughput::Bytes(number) | Throughput::BytesDecimal(number) => (number, self.0.per_byte),
            Throughput::Elements(number) | Throughput::ElementsAndBytes { elements: number, .. } => {
                (number, self.0.per_element)
            }
        };
        let number = number.max(1) as f64;
        for value in values {
            *value /= number;
        }
        unit
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        self.0.plain[0]
    }
}
