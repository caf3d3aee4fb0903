//! The smallest program with a client: prints the greetings of a server of `hello`, and their changes.

use std::error::Error;
use std::process::ExitCode;

use apiloom::client::cache::{Event, InformerFactory};
use apiloom::client::config::Config;
use apiloom::client::{Client, HasMetadata as _};
use apiloom::prelude::*;

// The kind as the server has it; a client reads only the fields that it names. With the package of the server as a dependency
// this would be `hello::Greeting`.
/// Greeting says hello.
#[apiloom::resource(group = "hello.example.com", version = "v1", namespaced)]
pub struct Greeting {
    pub metadata: ObjectMeta,
    pub spec: GreetingSpec,
}

/// GreetingSpec is what the user asks for.
#[apiloom::api]
pub struct GreetingSpec {
    /// Name of who is greeted.
    pub to: String,
}

/// Prints greetings until the server is stopped, or the program.
async fn follow(client: &Client) -> Result<(), Box<dyn Error>> {
    let informers = InformerFactory::new(client);
    let mut changes = informers.informer::<Greeting>().subscribe();
    informers.start();
    let mut stopped = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            result = &mut stopped => {
                result?;
                informers.shutdown().await;
                return Ok(());
            }
        };
        match change {
            Some(Event::Added { object, .. } | Event::Updated { new: object, .. }) => {
                println!("{}: hello, {}", object.name(), object.spec.to);
            }
            Some(Event::Deleted { last, .. }) => println!("{} is deleted", last.name()),
            Some(Event::Synced) => println!("these are all, what follows are changes"),
            // An informer has the other events for subscribers that ask for them.
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let run = async {
        let client = Config::from_env()?.client()?.build()?;
        follow(&client).await
    };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
