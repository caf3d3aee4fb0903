//! Ages as kubectl prints them: at most two units, coarser for older objects.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A number of seconds for people: `90s`, `5m`, `2d3h`.
pub(super) fn human(seconds: i64) -> String {
    match seconds {
        // Allows for clocks that differ by a second.
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds, DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// `2d3h`, or `2d` if the smaller unit is zero.
fn pair(seconds: i64, big: i64, big_name: &str, small: i64, small_name: &str) -> String {
    match seconds % big / small {
        0 => format!("{}{big_name}", seconds / big),
        rest => format!("{}{big_name}{rest}{small_name}", seconds / big),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_get_coarser() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY + 5 * HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR + 9 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
