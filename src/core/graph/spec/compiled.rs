//! The input of a compiler: the source's text, and the macros as options.

use std::path::{Path, PathBuf};

use super::kernel::{KernelSpec, MacroValue};
use super::{SpecError, read};
use crate::expression::Symbols;

/// Folders, relative to that of the file, in which sources are searched for: those
/// of the authors' repositories.
const FOLDERS: [&str; 6] = [
    "",
    "kernels",
    "../kernels",
    "../kernel_src",
    "../../kernels",
    "../../database/kernels",
];

impl KernelSpec {
    /// The macros as compiler options.
    pub(super) fn options(&self, symbols: &Symbols) -> Result<String, SpecError> {
        let mut options = Vec::new();
        for (name, value) in &self.macros {
            let value = match value {
                MacroValue::Type(name) => name.clone(),
                MacroValue::Number(expression) => match expression.value(symbols) {
                    // In brackets, since a sign may follow an operator.
                    Ok(number) if number.float() < 0.0 => format!("({number})"),
                    Ok(number) => number.to_string(),
                    Err(e) => {
                        let field = format!("macros_values.{name}");
                        return Err(self.fault(&field, e.to_string()));
                    }
                },
            };
            // A type of two words would need quotes, which drivers treat differently.
            options.push(format!("-D{name}={}", value.replace("unsigned ", "u")));
        }
        Ok(options.join(" "))
    }

    /// Finds and reads the kernel's source.
    pub(super) fn source(&self, sources: Option<&Path>) -> Result<(PathBuf, String), SpecError> {
        let beside = self.file.parent().unwrap_or(Path::new(""));
        let near = FOLDERS.iter().map(|folder| beside.join(folder));
        let folders: Vec<PathBuf> = sources
            .map(Path::to_owned)
            .into_iter()
            .chain(near)
            .collect();
        let found = folders
            .iter()
            .map(|folder| folder.join(&self.src))
            .find(|path| path.is_file());
        let Some(path) = found else {
            let first = folders.first().map_or(Path::new(""), PathBuf::as_path);
            let location = match first.as_os_str().is_empty() {
                true => "this folder".to_owned(),
                false => first.display().to_string(),
            };
            let why = format!(
                "there is no `{}` in {location}, nor in the folders beside it; say where sources are \
                 with --sources",
                self.src
            );
            return Err(self.fault("src", why));
        };
        let text =
            read(&path).map_err(|e| self.fault("src", format!("{}: {}", path.display(), e.why)))?;
        Ok((path, text))
    }
}
