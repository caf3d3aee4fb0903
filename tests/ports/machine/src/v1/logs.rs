//! The stream `log`: lines of text, and more of them while a client follows.

use std::time::Duration;

use apiloom::prelude::*;
use apiloom::server::http::{ConnectRequest, ConnectResponse, ConnectSubresource};
use futures_util::{StreamExt as _, stream};

use super::Machine;

/// Shows what a machine has done.
#[derive(Default)]
pub struct Logs;

/// How long a machine does nothing between two lines.
const PAUSE: Duration = Duration::from_millis(20);

#[async_trait]
impl ConnectSubresource<Machine> for Logs {
    async fn connect(&self, request: ConnectRequest<Machine>) -> Result<ConnectResponse, ApiError> {
        let name = request.object.metadata.name.clone().unwrap_or_default();
        let line = move |number: u64| Ok(format!("{name} does {number}\n").into());
        let lines = match request.text("tailLines") {
            "" => 3,
            number => number.parse().map_err(|_| {
                ApiError::bad_request(format!("tailLines {number:?} is not a number"))
            })?,
        };
        if request.boolean("panic") {
            let panic = stream::once(async { panic!("a machine is broken") });
            let lines = stream::iter(0..lines).map(line).chain(panic);
            return Ok(ConnectResponse::stream("text/plain", lines));
        }
        if !request.boolean("follow") {
            let lines = stream::iter(0..lines).map(line);
            return Ok(ConnectResponse::stream("text/plain", lines));
        }
        let lines = stream::iter(0..).then(move |number| {
            let line = line(number);
            async move {
                if number >= lines {
                    tokio::time::sleep(PAUSE).await;
                }
                line
            }
        });
        Ok(ConnectResponse::stream("text/plain", lines))
    }
}
