//! Deadlines of requests: the parameter `timeout`, the server's limit, and the two responses after a timeout.

use std::time::Duration;

use apiloom_meta::ApiError;
use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::interrupt::{self, Interrupt};
use http::{Response, StatusCode};
use tokio::time::Instant;

use super::query::Query;
use super::request_info::RequestInfo;
use crate::response::{Body, plain};

/// Default of `--request-timeout`, the longest time of requests that are not long-running.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of mutating handlers, below that of the request, and above the 30 s of a webhook.
pub(crate) const MUTATING_TIMEOUT: Duration = Duration::from_secs(34);

/// The timeout of a request, at most `longest`; `None` for a long-running one.
///
/// # Errors
/// BadRequest if `timeout` is not a duration.
pub fn request_timeout(
    info: &RequestInfo,
    query: &Query,
    longest: Duration,
) -> Result<Option<Duration>, ApiError> {
    if info.is_long_running() {
        return Ok(None);
    }
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(Some(longest));
    }
    let asked = parse_duration(text).ok_or_else(|| {
        let message = format!(
            "invalid timeout specified in the request URL - time: invalid duration {}",
            go_quote(&echoed(text))
        );
        ApiError::bad_request(message)
    })?;
    Ok(Some(if asked.is_zero() {
        longest
    } else {
        asked.min(longest)
    }))
}

/// Parses a duration as Go prints it: `5s`, `1m30s`, `100ms`, `1.5h`. A negative one, which has passed already,
/// becomes a nanosecond.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let duration: apiloom_meta::Duration = text.parse().ok()?;
    if duration.is_negative() {
        return Some(Duration::from_nanos(1));
    }
    duration.try_into().ok()
}

/// Interrupts the work of the request that is being polled at a deadline.
pub(crate) fn interrupt_at(deadline: Instant) {
    if let Some(interrupt) = interrupt::current() {
        set_deadline(&interrupt, deadline);
    }
}

/// Interrupts work at a moment of the runtime's clock, which is another one than that of the machine where it is paused.
pub(crate) fn set_deadline(interrupt: &Interrupt, deadline: Instant) {
    interrupt.set_after(deadline.saturating_duration_since(Instant::now()));
}

/// The 504 response after the timeout of a request without a response. It has no `kind`, as in kube-apiserver.
pub fn out_of_time() -> Response<Body> {
    const BODY: &str = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    plain(StatusCode::GATEWAY_TIMEOUT, BODY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(url: &str) -> Result<Option<Duration>, ApiError> {
        let uri: http::Uri = url.parse().expect("a URL");
        let info = RequestInfo::parse(&http::Method::GET, &uri).expect("resolves");
        request_timeout(&info, &Query::of(&uri), REQUEST_TIMEOUT)
    }

    #[test]
    fn the_query_may_shorten_the_time_of_a_request() {
        let check = |query: &str, expected: Duration| {
            assert_eq!(
                timeout(&format!("/api/v1/pods{query}")),
                Ok(Some(expected)),
                "{query}"
            );
        };
        check("", REQUEST_TIMEOUT);
        check("?timeout=", REQUEST_TIMEOUT);
        check("?timeout=0", REQUEST_TIMEOUT);
        check("?timeout=0s", REQUEST_TIMEOUT);
        check("?timeout=5s", Duration::from_secs(5));
        check("?timeout=1ms", Duration::from_millis(1));
        check("?timeout=1m30s", REQUEST_TIMEOUT);
        check("?timeout=1.5s", Duration::from_millis(1500));
        check("?timeout=1s500ms", Duration::from_millis(1500));
        check("?timeout=-5s", Duration::from_nanos(1));
    }

    #[test]
    fn a_watch_has_no_timeout() {
        assert_eq!(timeout("/api/v1/pods?watch=1&timeout=zz"), Ok(None));
    }

    #[test]
    fn what_is_no_duration_is_a_bad_request() {
        for (text, quoted) in [
            ("zz", "zz"),
            ("5", "5"),
            ("5x", "5x"),
            ("s", "s"),
            ("-", "-"),
            ("1..2s", "1..2s"),
            ("99999999999h", "99999999999h"),
        ] {
            let error = timeout(&format!("/api/v1/pods?timeout={text}")).expect_err(text);
            assert_eq!(
                error.message,
                format!(
                    "invalid timeout specified in the request URL - time: invalid duration \"{quoted}\""
                )
            );
        }
    }

    // A test with a paused clock may take longer than the timeout of a request by the clock of the machine, or shorter.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_as_far_away_as_by_the_clock_of_the_runtime() {
        tokio::time::advance(Duration::from_secs(3600)).await;
        let interrupt = Interrupt::default();
        interrupt.scope(|| interrupt_at(Instant::now() + Duration::from_secs(3600)));
        assert!(!interrupt.is_set());
        interrupt.scope(|| interrupt_at(Instant::now()));
        assert!(interrupt.is_set());
    }
}
