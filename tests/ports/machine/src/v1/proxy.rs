//! The stream `proxy`: forwards a request to the HTTP server of a machine, and sends its response back as it comes.
//!
//! It speaks HTTP/1.0, in which a body ends with its connection, so that it needs no client library.

use apiloom::meta::StatusReason;
use apiloom::prelude::*;
use apiloom::server::http::{ConnectRequest, ConnectResponse, ConnectSubresource};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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
        });
        answer.map(ConnectResponse::http)
    }
}

async fn forward(
    address: &str,
    request: &mut ConnectRequest<Machine>,
) -> Result<
    Response<StreamBody<impl Stream<Item = Result<Frame<Bytes>, BoxError>> + use<>>>,
    BoxError,
> {
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
    let head = format!(
        "{} {path}{query}{} HTTP/1.0\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
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
    let pieces = stream::unfold(
        (read, connection),
        |(mut read, mut connection)| async move {
            if read.is_empty() {
                match connection.read_buf(&mut read).await {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some((Err(error.into()), (read, connection))),
                }
            }
            let piece = read.split().freeze();
            Some((Ok(Frame::data(piece)), (read, connection)))
        },
    );
    Ok(response.body(StreamBody::new(pieces))?)
}
