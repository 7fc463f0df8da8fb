use super::*;
use crate::dataset::DatasetError;
use crate::file_error::FileError;

#[test]
fn a_file_says_its_format_its_provenance_and_its_columns() {
    let text = text(&dataset());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "# pdawl-samples/1",
            "# hardware: i7, Tesla K40",
            "# command: pdawl profile --machine k40",
        ]
    );
    assert_eq!(
        lines[3],
        "machine,simulated,device,kind,codelet,configuration,repeat,counters,steps,seconds,\
         machine.clock_mhz,known.units_count,derived.working_set_over_l3_ratio,\
         trace.h2d_seconds,trace.overlap_seconds"
    );
    assert_eq!(
        lines[4],
        "k40,false,gpu0,gpu,stencil5-f64,\"4096, chunk 64\",0,none,30,0.1,\
         3400,4096,32.5,0.1,0.05"
    );
}

#[test]
fn absent_figures_are_empty_cells_and_stay_absent() {
    let mut dataset = dataset();
    dataset.samples[0].features.remove("machine.clock_mhz");
    dataset.samples[1]
        .features
        .insert("telemetry.power_watts".into(), 235.0);
    let text = text(&dataset);
    assert!(text.contains(",0.1,,4096,"));
    assert_eq!(parse(text.as_bytes(), "runs.csv").unwrap(), dataset);
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    std::fs::write(&path, "precious").unwrap();
    let refusal = |change: &dyn Fn(&mut Dataset)| {
        let mut dataset = dataset();
        change(&mut dataset);
        let error = write(&path, &dataset).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        error.to_string()
    };
    let twice = refusal(&|d| d.samples[1].repeat = 0);
    assert!(twice.contains("`4096, chunk 64` of stencil5-f64 on gpu0, repeat 0"));
    assert!(twice.contains("stands on line 5 already"));
    let prior = refusal(&|d| {
        d.samples[0].features.insert("prior.seconds".into(), 1.0);
    });
    assert!(prior.contains("column `prior.seconds`"), "{prior}");
    assert!(refusal(&|d| d.samples[0].seconds = f64::NAN).contains("column `seconds`"));
    assert!(refusal(&|d| d.samples[0].device = "a\nb".into()).contains("a line break"));
    assert!(refusal(&|d| d.samples[1].simulated = true).contains("differs from line 5"));
    assert!(refusal(&|d| d.samples.clear()).contains("no rows"));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/runs.csv");
    let error = write(&path, &dataset()).unwrap_err();
    assert!(matches!(error, DatasetError::File(FileError::Write { .. })));
    assert!(error.to_string().contains("none/runs.csv"));
}
