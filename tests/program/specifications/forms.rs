//! Specification files in the forms that PySchedCL's authors use for fields and
//! graphs.

use pdawl_api::graph::spec::dag::load;
use pdawl_api::graph::spec::{Argument, Direction, KernelSpec, Specification};
use pdawl_api::machine::DeviceKind;

use super::fixtures::{Folder, SOURCE, SPEC, example, symbols};

#[test]
fn numbers_texts_lists_and_brackets_mean_the_same() {
    let forms = [
        SPEC.to_owned(),
        SPEC.replace(r#""[dataset]""#, "[64]")
            .replace(r#""[TS]""#, "8"),
        SPEC.replace(r#""[dataset]""#, r#""dataset""#)
            .replace(r#""[TS]""#, r#"["TS"]"#),
        SPEC.replace(r#""workDimension": 1"#, r#""workDimension": "1""#)
            .replace(r#""pos": 1"#, r#""pos": "1""#)
            .replace(r#""break": 1"#, r#""break": true"#),
        SPEC.replace(
            r#""partition": 3"#,
            r#""partition": "3", "ecos": {"64": 1}, "id": 1"#,
        ),
        SPEC.replace(r#""[dataset]""#, r#""(dataset, 1)""#),
    ];
    let mut first = None;
    for text in forms {
        let folder = Folder::with(&[("spec.json", &text), ("scale.cl", SOURCE)]);
        let spec = KernelSpec::load(&folder.spec()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut kernel = spec
            .resolve(&symbols(&[]), None)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        kernel.source = "scale.cl".into();
        kernel.global.retain(|items| *items > 1);
        kernel.local = kernel
            .local
            .map(|l| l.into_iter().filter(|items| *items > 1).collect());
        assert_eq!(
            *first.get_or_insert_with(|| kernel.clone()),
            kernel,
            "{text}"
        );
    }
    let kernel = first.expect("forms");
    assert_eq!(
        (kernel.options.as_str(), kernel.partition),
        ("-DTS=8", Some(3))
    );
    let Argument::Scalar { bytes, .. } = &kernel.arguments[3] else {
        panic!("{:?}", kernel.arguments[3]);
    };
    assert_eq!(*bytes, 64i32.to_ne_bytes());
}

#[test]
fn symbols_that_are_given_go_before_the_files() {
    let folder = Folder::with(&[("spec.json", SPEC), ("scale.cl", SOURCE)]);
    let spec = KernelSpec::load(&folder.spec()).unwrap();
    let kernel = spec
        .resolve(&symbols(&[("dataset", 1024), ("TS", 16)]), None)
        .unwrap();
    assert_eq!((kernel.global, kernel.local), (vec![1024], Some(vec![16])));
    assert_eq!(kernel.options, "-DTS=16");
}

#[test]
fn a_field_that_nobody_knows_is_passed_over_with_a_warning() {
    let text = SPEC.replace(r#""partition": 3"#, r#""partition": 3, "inputBufers": []"#);
    let folder = Folder::with(&[("spec.json", &text), ("scale.cl", SOURCE)]);
    let spec = KernelSpec::load(&folder.spec()).unwrap();
    assert_eq!(spec.warnings.len(), 1);
    assert!(
        spec.warnings[0].contains("inputBufers"),
        "{:?}",
        spec.warnings
    );
}

/// A graph as PySchedCL's authors lay it out: sources and kernel files in
/// separate folders, and a list of kernels as their program writes it.
#[test]
fn the_authors_folders_and_lists_are_read() {
    let list = r#"[
      {"src": "k.cl", "name": "copy", "workDimension": 2, "globalWorkSize": "[4, 4]",
       "inputBuffers": [{"break": 0, "type": "float", "pos": 1, "size": "16"}],
       "outputBuffers": [{"break": 0, "type": "float", "pos": 0, "size": "16"}],
       "ioBuffers": [], "partition": 10, "id": 4, "depends": [], "task": 0,
       "symbolicVariables": {"partition": 10}},
      {"src": "k.cl", "name": "copy", "workDimension": 2, "globalWorkSize": [4, 4],
       "inputBuffers": [{"break": 0, "from": {"kernel": "4", "pos": 0}, "type": "float",
                         "pos": 1, "size": "16", "chunk": 4}],
       "outputBuffers": [{"break": 0, "type": "float", "pos": 0, "size": "16"}],
       "partition": 0, "id": 6, "depends": [4], "task": 1}
    ]"#;
    let source = "__kernel void copy(__global float *out, __global float *in) {
        int i = get_global_id(1) * get_global_size(0) + get_global_id(0);
        out[i] = in[i];
    }";
    let folder = Folder::with(&[("info/t1.json", list), ("kernels/k.cl", source)]);
    let Specification::Dag(dag) = load(&folder.path("info/t1.json")).unwrap() else {
        panic!("a graph");
    };
    let ids: Vec<u64> = dag.kernels.iter().map(|node| node.id).collect();
    assert_eq!(ids, [4, 6]);
    assert_eq!((dag.edges[0].from, dag.edges[0].to), ((0, 0), (1, 1)));
    assert_eq!(dag.order, [(0, 1)]);
    assert_eq!(dag.components, Some(vec![vec![0], vec![1]]));
    let devices: Vec<_> = dag.kernels.iter().map(|node| node.device).collect();
    assert_eq!(devices, [Some(DeviceKind::Gpu), Some(DeviceKind::Cpu)]);
    let kernels: Vec<_> = (dag.kernels.iter())
        .map(|node| {
            node.spec
                .resolve(&dag.symbols_of(node, &symbols(&[])), None)
                .unwrap()
        })
        .collect();
    dag.check(&kernels).unwrap();
    assert_eq!(kernels[0].buffers().count(), 2);
}

#[test]
fn graphs_as_text_take_what_python_takes() {
    let kernel = r#"{"src": "k.cl", "name": "k", "workDimension": 1, "globalWorkSize": "m1/wpt",
        "ioBuffers": [{"type": "int", "size": "m1", "pos": 0}]}"#;
    let source = "__kernel void k(__global int *x) { x[get_global_id(0)]++; }";
    let text = "0 k.json {'m1':64,'wpt':2,'partition':0}\n1 k.json {\"m1\": 64, \"wpt\": 4, \
                \"localWorkSize\": 8}\n---\n0 0->1 0\n---\n";
    let files = [
        ("d.dag", text),
        ("info/k.json", kernel),
        ("info/k.cl", source),
    ];
    let folder = Folder::with(&files);
    let Specification::Dag(dag) = load(&folder.path("d.dag")).unwrap() else {
        panic!("a graph");
    };
    let of = |index: usize| {
        let node = &dag.kernels[index];
        node.spec
            .resolve(&dag.symbols_of(node, &symbols(&[])), None)
            .unwrap()
    };
    assert_eq!(
        (of(0).global, of(0).local, of(0).partition),
        (vec![32], None, Some(0))
    );
    assert_eq!((of(1).global, of(1).local), (vec![16], Some(vec![8])));
    let (_, buffer) = of(0).buffers().next().map(|(p, b)| (p, b.clone())).unwrap();
    assert_eq!((buffer.direction, buffer.elements), (Direction::Both, 64));
    dag.check(&[of(0), of(1)]).unwrap();
}

#[test]
fn the_examples_are_right() {
    for name in ["head.dag", "three.json"] {
        let Specification::Dag(dag) = load(&example(name)).unwrap_or_else(|e| panic!("{e}")) else {
            panic!("{name}: a graph");
        };
        let mut kernels = Vec::new();
        for node in &dag.kernels {
            let kernel = node
                .spec
                .resolve(&dag.symbols_of(node, &symbols(&[])), None);
            let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
            let (_, doubts) = node
                .spec
                .agrees_with_source(&kernel)
                .unwrap_or_else(|e| panic!("{e}"));
            assert!(doubts.is_empty(), "{name}: {doubts:?}");
            kernels.push(kernel);
        }
        dag.check(&kernels).unwrap_or_else(|e| panic!("{e}"));
    }
    let Specification::Dag(dag) = load(&example("three.json")).unwrap() else {
        panic!("a graph");
    };
    assert_eq!(dag.components, Some(vec![vec![0, 2], vec![1]]));
    let queues = [("cpu".to_owned(), 1), ("gpu".to_owned(), 2)];
    assert_eq!(dag.queues, queues);
    for name in ["vadd.json", "matmul.json", "softmax.json", "transpose.json"] {
        let spec = KernelSpec::load(&example(name)).unwrap_or_else(|e| panic!("{e}"));
        let kernel = spec
            .resolve(&symbols(&[]), None)
            .unwrap_or_else(|e| panic!("{e}"));
        spec.agrees_with_source(&kernel)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}
