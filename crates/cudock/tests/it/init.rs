//! `cudock init`.

use crate::support::{code, cudock, shown};

#[test]
fn an_example_is_written_once_and_can_be_planned_and_served() {
    let dir = tempfile::tempdir().unwrap();
    let init = |args: &[&str]| cudock(&[&["init"], args].concat()).current_dir(dir.path()).output().unwrap();
    let output = init(&["--example", "digits"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(dir.path().join("digits/model.onnx").is_file());
    let plan = cudock(&["plan", "digits", "--rate", "5"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(code(&plan), 0, "{}", shown(&plan));

    let again = init(&["--example", "digits"]);
    assert_eq!(code(&again), 3, "{}", shown(&again));
    assert!(shown(&again).contains("cannot create digits/README.md"), "{}", shown(&again));
    let unknown = init(&["--example", "digit"]);
    assert_eq!(code(&unknown), 2);
    assert!(shown(&unknown).contains("did you mean `digits`"), "{}", shown(&unknown));
}
