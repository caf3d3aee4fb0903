//! The rules of wardle, and a program that uses it, with a server in memory for each test.

use std::time::Duration;

use apiloom::client::Error;
use apiloom::client::cache::InformerFactory;
use apiloom::meta::kind::Verb;
use apiloom::prelude::*;
use apiloom::testing::{Control, Fault, TestError};
use wardle::generated::clientset::{Clientset, Informers};
use wardle::generated::fake;
use wardle::v1alpha1::{Fischer, Flunder, FlunderSpec};

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn flunder(name: &str) -> Flunder {
    let spec = FlunderSpec {
        reference: Some("other".to_owned()),
        reference_type: None,
    };
    Flunder {
        metadata: named(name),
        spec: Some(spec),
        status: None,
    }
}

#[apiloom::test]
async fn a_banned_flunder_is_refused(wardle: Clientset) -> Result<(), Error> {
    let wardle = wardle.wardle_v1alpha1();
    let fischer = Fischer {
        metadata: named("rules"),
        disallowed_flunders: vec!["bad".to_owned()],
    };
    wardle.fischers().create(&fischer).await?;
    let refused = wardle.flunders("default").create(&flunder("bad")).await;
    assert!(refused.is_err_and(|error| error.is_forbidden()));
    wardle.flunders("default").create(&flunder("good")).await?;
    Ok(())
}

#[apiloom::test(paused)]
async fn labels_are_set_though_a_write_conflicts_and_a_response_is_lost(
    wardle: Clientset,
    control: Control,
) -> Result<(), Error> {
    let flunders = wardle.wardle_v1alpha1().flunders("default");
    flunders.create(&flunder("a")).await?;
    control.take_actions();
    let conflict = control.inject(Fault::on(Verb::Update).kind::<Flunder>().conflict());
    let label = |flunder: &mut Flunder| {
        let labels = &mut flunder.metadata.labels;
        labels.insert("seen".to_owned(), "yes".to_owned());
    };
    flunders.update_with("a", label).await?;
    assert!(conflict.is_over());
    let actions = control.take_actions();
    let texts: Vec<String> = actions.iter().map(ToString::to_string).collect();
    let expected = ["get", "update", "get", "update"];
    assert_eq!(
        texts,
        expected.map(|verb| format!("{verb} flunders default/a"))
    );

    control.inject(Fault::on(Verb::Delete).lost_after());
    assert!(matches!(
        flunders.delete("a").await,
        Err(Error::Transport(_))
    ));
    let gone = flunders.get("a").await;
    assert!(gone.is_err_and(|error| error.is_not_found()));
    Ok(())
}

#[tokio::test]
async fn an_informer_has_the_same_state_after_lost_watches() -> Result<(), TestError> {
    let builder = fake::Clientset::builder().objects([flunder("a")]);
    let (wardle, control) = builder.build().await?;
    let informers = Informers::new(InformerFactory::new(wardle.client()));
    let flunders = informers.wardle_v1alpha1().flunders();
    let lister = flunders.lister();
    informers.factory().start();
    let limit = Duration::from_secs(20);
    let synced = informers.factory().wait_for_sync(limit).await;
    synced.expect("the informer has a state");

    control.drop_watches();
    control.compact().await?;
    let api = wardle.wardle_v1alpha1().flunders("default");
    api.create(&flunder("b")).await.expect("b is created");
    api.delete("a").await.expect("a is deleted");
    let same = async {
        loop {
            let names: Vec<_> = lister
                .list()
                .iter()
                .map(|one| one.metadata.name.clone())
                .collect();
            if names == [Some("b".to_owned())] {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(limit, same)
        .await
        .expect("the informer catches up");
    informers.factory().shutdown().await;
    Ok(())
}
