//! `pdawl model adapt`: a model of one machine corrected by a few runs on another.

use pdawl_profiler::bundle::Bundle;
use predicates::str::contains;

use super::{refuses, with_model};

#[test]
fn a_foreign_model_is_adapted_by_eight_runs() {
    let home = with_model();
    let report = home.json("model adapt k40 --machine titan --runs 8");
    assert_eq!(report["schema"], "pdawl-model-adapt/1");
    assert_eq!(
        (&report["machine"], &report["simulated"]),
        (&"titan".into(), &true.into())
    );
    let groups = report["groups"].as_array().unwrap();
    let runs = groups
        .iter()
        .map(|group| group["runs"].as_array().unwrap().len());
    assert_eq!(runs.collect::<Vec<_>>(), [4, 4]);
    for group in groups {
        let error = |of: &str| group[of].as_f64().unwrap();
        assert!(
            error("after") <= error("before") && error("after") < 0.02,
            "{group}"
        );
    }
    let adapted = Bundle::read(&home.model("titan-from-k40")).unwrap();
    let from = adapted.adapted.as_ref().unwrap();
    let foreign = Bundle::read(&home.model("k40")).unwrap();
    assert_eq!((from.machine.as_str(), from.runs), ("k40", 8));
    assert_eq!(from.checksum, foreign.checksum().unwrap());
    // The adapted model is now the model of that machine.
    home.pdawl("predict stencil --machine titan --size 9000")
        .assert()
        .success()
        .stdout(contains("predicted by model titan-from-k40"));
    refuses(
        &home,
        "model adapt none --machine titan",
        &["no model is called `none`"],
    );
    home.pdawl("model adapt k40 --machine titan --runs 1")
        .assert()
        .code(2);
}
