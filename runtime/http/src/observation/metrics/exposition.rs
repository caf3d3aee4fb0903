//! The two text formats: OpenMetrics, and the older Prometheus format that all scrapers support.

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::registry::Registry;

pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Encodes OpenMetrics, with further families that are in the older format. Writing fails only if a collector does; the
/// text up to there consists of complete lines.
pub(super) fn open_metrics(registry: &Registry, further: &str) -> String {
    let mut out = String::new();
    let _ = encode_registry(&mut out, registry);
    for line in further.lines() {
        out.push_str(&without_suffix(line).unwrap_or_else(|| line.to_owned()));
        out.push('\n');
    }
    let _ = encode_eof(&mut out);
    out
}

/// A line `# HELP` or `# TYPE` of a counter as OpenMetrics has it; `None` for other lines.
fn without_suffix(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix("# ")?.split_once("_total ")?;
    // The name ends there.
    let is_whole = name
        .split_once(' ')
        .is_some_and(|(_, name)| !name.contains(' '));
    is_whole.then(|| format!("# {name} {rest}"))
}

/// Encodes the older format, in which `HELP` and `TYPE` name a counter with the suffix `_total`, with further families
/// that are in this format already.
pub(super) fn text(registry: &Registry, further: &str) -> String {
    let mut lines = String::new();
    let _ = encode_registry(&mut lines, registry);
    let mut out = String::with_capacity(lines.len() + 1024 + further.len());
    let mut help = None;
    for line in lines.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
            continue;
        }
        let counter = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.strip_suffix(" counter"));
        for part in help.take().into_iter().chain([line]) {
            match counter {
                Some(name) => out.push_str(&part.replacen(name, &format!("{name}_total"), 1)),
                None => out.push_str(part),
            }
            out.push('\n');
        }
    }
    out.push_str(further);
    out
}
