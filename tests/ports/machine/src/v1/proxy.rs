//! The stream `proxy`: forwards a request to the HTTP server of a machine, and sends its response back as it comes. If both
//! switch to another protocol, it copies bytes in both directions.
//!
//! It speaks HTTP/1.0, in which a body ends with its connection, so that it needs no client library; but protocols are
//! switched in HTTP/1.1.

use apiloom::meta::StatusReason;
use apiloom::prelude::*;
use apiloom::server::http::{ConnectRequest, ConnectResponse, ConnectSubresource};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use http::header::UPGRADE;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::Machine;

/// Forwards requests to `spec.address`.
#[derive(Default)]
pub struct Proxy;

/// Longest head of a response, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[async_trait]
impl ConnectSubresource<Machine> for Proxy {
    async fn connect(
        &self,
        mut request: ConnectRequest<Machine>,
    ) -> Result<ConnectResponse, ApiError> {
        let address = request.object.spec.address.clone().unwrap_or_default();
        let answer = forward(&address, &mut request).await.map_err(|error| {
            let message = format!("error trying to reach {address:?}: {error}");
            ApiError::new(StatusReason::ServiceUnavailable, message)
        })?;
        let is_switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        let protocol = answer.headers().get(UPGRADE).cloned();
        let (Some(protocol), true) = (protocol, is_switched && request.upgrade().is_some()) else {
            return Ok(ConnectResponse::http(answer.map(body)));
        };
        let (
            head,
            Answered {
                read,
                mut connection,
            },
        ) = answer.into_parts();
        request.switch(protocol, head.headers, async move |mut client| {
            // An error of either side ends both connections, which are dropped here.
            if client.write_all(&read).await.is_ok() {
                let _ = copy_bidirectional(&mut client, &mut connection).await;
            }
        })
    }
}

/// A connection after the head of a response, and what was read behind it.
struct Answered {
    read: BytesMut,
    connection: TcpStream,
}

/// The headers of a request that switches protocols; none if it does not.
fn upgrade(request: &ConnectRequest<Machine>) -> String {
    let Some(protocol) = request.upgrade() else {
        return String::new();
    };
    let mut lines = format!("connection: Upgrade\r\nupgrade: {protocol}\r\n");
    for (name, value) in &request.headers {
        if let (true, Ok(value)) = (name.as_str().starts_with("sec-websocket-"), value.to_str()) {
            lines += &format!("{name}: {value}\r\n");
        }
    }
    lines
}

async fn forward(
    address: &str,
    request: &mut ConnectRequest<Machine>,
) -> Result<Response<Answered>, BoxError> {
    let mut body = BytesMut::new();
    while let Some(piece) = request.body.next().await {
        body.extend_from_slice(&piece?);
        if body.len() > MAX_HEAD_BYTES {
            return Err("the body is too long".into());
        }
    }
    let path = if request.path.is_empty() {
        "/"
    } else {
        &request.path
    };
    let query = if request.raw_query.is_empty() {
        ""
    } else {
        "?"
    };
    let upgrade = upgrade(request);
    let version = if upgrade.is_empty() { "1.0" } else { "1.1" };
    let head = format!(
        "{} {path}{query}{} HTTP/{version}\r\nhost: {address}\r\n{upgrade}content-length: {}\r\n\r\n",
        request.method,
        request.raw_query,
        body.len()
    );
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(&body).await?;
    let mut read = BytesMut::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if read.len() > MAX_HEAD_BYTES || connection.read_buf(&mut read).await? == 0 {
            return Err("the response has no head".into());
        }
    };
    let head = read.split_to(end + 4).freeze();
    let mut lines = std::str::from_utf8(&head)?.lines();
    let code = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut response = Response::builder().status(code.unwrap_or_default());
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        response = response.header(name, value);
    }
    Ok(response.body(Answered { read, connection })?)
}

/// The body of a response, which ends with its connection.
fn body(answered: Answered) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, BoxError>>> {
    let pieces = stream::unfold(answered, |mut answered| async move {
        if answered.read.is_empty() {
            match answered.connection.read_buf(&mut answered.read).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some((Err(error.into()), answered)),
            }
        }
        let piece = answered.read.split().freeze();
        Some((Ok(Frame::data(piece)), answered))
    });
    StreamBody::new(pieces)
}
