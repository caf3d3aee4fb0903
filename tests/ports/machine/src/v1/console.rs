//! The stream `console`: sends back on channel 1 what comes on channel 0, over WebSocket, as the streams of kubectl do.

use apiloom::meta::Status;
use apiloom::prelude::*;
use apiloom::server::http::{ConnectRequest, ConnectResponse, ConnectSocket, ConnectSubresource};

use super::Machine;

/// The console of a machine.
#[derive(Default)]
pub struct Console;

/// Input of the client.
const STDIN: u8 = 0;
/// Output.
const STDOUT: u8 = 1;
/// The result, as a Status.
const RESULT: u8 = 3;
/// The end of a channel, in v5.
const CLOSE: u8 = 255;

#[async_trait]
impl ConnectSubresource<Machine> for Console {
    async fn connect(
        &self,
        mut request: ConnectRequest<Machine>,
    ) -> Result<ConnectResponse, ApiError> {
        let banner = request.text("banner").to_owned();
        let protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
        request.websocket(&protocols, |socket| echo(socket, banner))
    }
}

async fn echo(mut socket: ConnectSocket, banner: String) {
    if socket
        .send_channel(STDOUT, banner.as_bytes())
        .await
        .is_err()
    {
        return;
    }
    while let Some((channel, bytes)) = socket.receive_channel().await {
        assert_ne!(&*bytes, b"panic", "a machine is broken");
        let is_over = match channel {
            STDIN => bytes.is_empty(),
            CLOSE => bytes.first() == Some(&STDIN),
            _ => continue,
        };
        if is_over {
            let result = serde_json::to_vec(&Status::success()).unwrap_or_default();
            let _ = socket.send_channel(RESULT, &result).await;
            return;
        }
        if socket.send_channel(STDOUT, &bytes).await.is_err() {
            return;
        }
    }
}
