//! Calls that are made again, as those of kube-apiserver to webhooks that review users and permissions.

use std::time::Duration;

use super::WebhookError;

/// Most calls of one question.
const TRIES: u32 = 5;

/// The pause after the first call.
const PAUSE: Duration = Duration::from_millis(500);

/// How much longer each pause is than the one before.
const FACTOR: f64 = 1.5;

/// Part of a pause that is added at random, so that several servers do not ask at the same moments.
const JITTER: f64 = 0.2;

/// Calls until there is an answer or an error that does not pass by itself, at most five times, with a longer pause after each call.
///
/// # Errors
/// That of the last call.
pub async fn tries<T, F>(mut call: impl FnMut() -> F) -> Result<T, WebhookError>
where
    F: Future<Output = Result<T, WebhookError>>,
{
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.is_transient => {}
            result => return result,
        }
        tokio::time::sleep(pause.mul_f64(1.0 + JITTER * fastrand::f64())).await;
        pause = pause.mul_f64(FACTOR);
    }
    call().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again() {
        let error = |is_transient| WebhookError {
            text: "out".to_owned(),
            code: None,
            is_transient,
        };
        let calls = Cell::new(0);
        let call = |results: &'static [Option<bool>]| {
            calls.set(0);
            tries(|| {
                let result = results[calls.get()];
                calls.set(calls.get() + 1);
                async move { result.map_or(Ok(()), |is_transient| Err(error(is_transient))) }
            })
        };
        assert!(call(&[Some(true), Some(true), None]).await.is_ok());
        assert_eq!(calls.get(), 3);
        assert!(call(&[Some(true), Some(false)]).await.is_err());
        assert_eq!(calls.get(), 2);
        let began = tokio::time::Instant::now();
        assert!(call(&[Some(true); 5]).await.is_err());
        assert_eq!(calls.get(), 5);
        let pauses = began.elapsed().as_secs_f64();
        assert!((4.0..4.9).contains(&pauses), "{pauses}");
    }
}
