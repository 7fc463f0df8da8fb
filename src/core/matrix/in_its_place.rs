//! What lies in place of a file that was to be fetched.

/// What these first bytes of a file are, if they are of something that stands for the file, and
/// the remedy.
pub fn in_its_place(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    if begin.starts_with(b"version https://git-lfs") {
        return Some((
            "a pointer of Git LFS, which stands for the file",
            "fetch the file itself with `git lfs pull`",
        ));
    }
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    match begin.trim_ascii_start().first() {
        Some(b'<') => Some((
            "an HTML or XML page, as servers send in place of a file",
            "see what it says, and fetch the file itself",
        )),
        Some(b'{') => Some((
            "a JSON text, as servers send in place of a file",
            "see what it says, and fetch the file itself",
        )),
        _ => None,
    }
}
