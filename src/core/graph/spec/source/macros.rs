//! Macros, those of compilers too, and their replacement in a text.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{close, parts};
use super::preprocess::Seen;
use super::{Token, is_name};
use crate::codelet::opencl_c;

/// A macro.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Macro {
    /// Its text.
    Plain(Vec<Token>),
    /// Its parameters and its text.
    Function(Vec<Token>, Vec<Token>),
    /// One that cannot be read, such as with GNU's names for any number of arguments. It
    /// is not replaced.
    Opaque,
}

/// Joins the tokens beside it.
const JOIN: &str = "##";
/// The name of what `...` takes.
const VARIADIC: &str = "__VA_ARGS__";

/// The macros that are defined.
pub(super) type Macros = BTreeMap<String, Macro>;

/// Most levels of macros within macros, and of calls within arguments of calls.
const DEEPEST: usize = 16;
const DEEPEST_CALLS: usize = 64;

/// What the macros and names of types of a source may make, all together: a few short ones can
/// grow without bounds. What is looked at for that counts, too.
pub(super) struct Room {
    tokens: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            tokens: 1_000_000,
            bytes: 16 << 20,
        }
    }
}

impl Room {
    /// Takes room for these tokens. Once there was too little, there is none.
    pub fn takes(&mut self, tokens: &[Token]) -> bool {
        let bytes: usize = tokens.iter().map(String::len).sum();
        let left = (self.tokens.checked_sub(tokens.len())).zip(self.bytes.checked_sub(bytes));
        (self.tokens, self.bytes) = left.unwrap_or((0, 0));
        left.is_some()
    }

    /// Whether there is none.
    pub fn is_full(&self) -> bool {
        self.tokens == 0
    }
}

/// The macro that a directive of these tokens defines; `rest` are the words behind the first.
pub(super) fn defined_as(directive: &[opencl_c::Token], rest: &[Token]) -> Option<(String, Macro)> {
    let (name, value) = rest.split_first()?;
    // A macro has arguments only if a bracket follows its name at once.
    let is_joined = matches!(directive, [_, name, next, ..] if name.at.end == next.at.start);
    let known = match is_joined && value.first().is_some_and(|sign| sign == "(") {
        true => function(value),
        false => {
            let text = substituted(&[], value, &[], &mut Room::default(), &mut |_, given| {
                given.to_vec()
            });
            text.map_or(Macro::Opaque, Macro::Plain)
        }
    };
    Some((name.clone(), known))
}

fn function(value: &[Token]) -> Macro {
    let Some(end) = close(value, 0) else {
        return Macro::Opaque;
    };
    let names: Vec<&[Token]> = parts(&value[1..end]);
    let text = &value[end + 1..];
    let last = names.len().saturating_sub(1);
    let names: Option<Vec<Token>> = (names.iter().enumerate())
        .map(|(index, name)| match name {
            [one] if is_name(one) => Some(one.clone()),
            [one] if one == "..." && index == last => Some(VARIADIC.to_owned()),
            _ => None,
        })
        .collect();
    let optional = text.iter().any(|token| token == "__VA_OPT__");
    match names {
        Some(names) if !optional => Macro::Function(names, text.to_vec()),
        _ => Macro::Opaque,
    }
}

/// Adds tokens with their macros replaced.
pub(super) fn expanded(given: &[(Token, usize)], macros: &Macros, seen: &mut Seen) {
    let tokens: Vec<Token> = given.iter().map(|(token, _)| token.clone()).collect();
    let mut expansion = Expansion {
        macros,
        within: BTreeSet::new(),
        calls: 0,
        room: &mut seen.room,
        stayed: false,
    };
    let mut at = 0;
    while at < tokens.len() {
        let line = given[at].1;
        at = expansion.one(&tokens, at, &mut seen.tokens);
        seen.lines.resize(seen.tokens.len(), line);
    }
    seen.has_macros |= expansion.stayed;
}

/// A replacement of macros.
struct Expansion<'a> {
    macros: &'a Macros,
    /// The macros whose text is being read.
    within: BTreeSet<String>,
    /// Calls of macros whose arguments are being read.
    calls: usize,
    room: &'a mut Room,
    /// Whether the name of a macro stayed.
    stayed: bool,
}

impl Expansion<'_> {
    /// Adds the token at `at`, or what its macro makes of it. Returns the index of what
    /// follows.
    fn one(&mut self, tokens: &[Token], at: usize, made: &mut Vec<Token>) -> usize {
        let token = &tokens[at];
        let macros = self.macros;
        let known = macros.get(token).filter(|_| is_name(token));
        let too_many = self.within.len() >= DEEPEST || self.room.is_full();
        let replaced = match known {
            Some(_) if self.within.contains(token) || too_many => None,
            Some(Macro::Plain(text)) => {
                let fits = self.room.takes(text);
                fits.then(|| (text.clone(), at + 1))
            }
            Some(Macro::Function(names, text)) => self.called(tokens, at, (names, text)),
            Some(Macro::Opaque) | None => None,
        };
        match replaced {
            Some((text, next)) => {
                self.within.insert(token.clone());
                self.all(&text, made);
                self.within.remove(token);
                next
            }
            None => {
                // Within its own text, the name of a plain macro is what it stands for.
                let is_itself =
                    self.within.contains(token) && matches!(known, Some(Macro::Plain(_)));
                self.stayed |= known.is_some() && !is_itself;
                made.push(token.clone());
                at + 1
            }
        }
    }

    fn all(&mut self, tokens: &[Token], made: &mut Vec<Token>) {
        let mut at = 0;
        while at < tokens.len() {
            at = self.one(tokens, at, made);
        }
    }

    /// A call of a macro with arguments, replaced; `None` if it is none. The index is that of
    /// what follows.
    fn called(
        &mut self,
        tokens: &[Token],
        at: usize,
        (names, text): (&[Token], &[Token]),
    ) -> Option<(Vec<Token>, usize)> {
        if tokens.get(at + 1)? != "(" || self.calls == DEEPEST_CALLS {
            return None;
        }
        let end = close(tokens, at + 1);
        if !self.room.takes(&tokens[at..end.unwrap_or(tokens.len())]) {
            return None;
        }
        let end = end?;
        let given = arguments(&tokens[at + 2..end], names)?;
        let mut room = std::mem::take(self.room);
        self.calls += 1;
        let made = substituted(names, text, &given, &mut room, &mut |room, given| {
            std::mem::swap(self.room, room);
            let mut made = Vec::new();
            self.all(given, &mut made);
            std::mem::swap(self.room, room);
            made
        });
        self.calls -= 1;
        *self.room = room;
        Some((made?, end + 1))
    }
}

/// The arguments of a call, one a name; those of `...` are one argument.
fn arguments(tokens: &[Token], names: &[Token]) -> Option<Vec<Vec<Token>>> {
    let mut given: Vec<Vec<Token>> = vec![Vec::new()];
    let takes_all = names.last().is_some_and(|name| name == VARIADIC);
    let mut depth = 0usize;
    for token in tokens {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 && !(takes_all && given.len() == names.len()) => {
                given.push(Vec::new());
                continue;
            }
            _ => {}
        }
        given.last_mut()?.push(token.clone());
    }
    match given.len() {
        1 if names.is_empty() => given[0].is_empty().then(Vec::new),
        // Nothing for `...` needs no comma.
        count if takes_all && count + 1 == names.len() => {
            given.push(Vec::new());
            Some(given)
        }
        count => (count == names.len()).then_some(given),
    }
}

/// A macro's text with these arguments. Tokens beside `##` are joined, with the arguments
/// as they were given; `#` makes a string; other arguments have their macros replaced, by
/// `whole`. `None` if there is too little room.
fn substituted(
    names: &[Token],
    text: &[Token],
    given: &[Vec<Token>],
    room: &mut Room,
    whole: &mut dyn FnMut(&mut Room, &[Token]) -> Vec<Token>,
) -> Option<Vec<Token>> {
    let place = |token: Option<&Token>| names.iter().position(|name| Some(name) == token);
    let mut made: Vec<Token> = Vec::new();
    // Where the tokens begin that the last one of the text became.
    let mut last = 0;
    let mut at = 0;
    while at < text.len() {
        let joins = text[at] == JOIN && at > 0;
        at += usize::from(joins);
        let Some(token) = text.get(at) else { break };
        let beside = joins || text.get(at + 1).is_some_and(|next| next == JOIN);
        let argument = place(Some(token));
        let piece = match argument {
            _ if token == "#" && place(text.get(at + 1)).is_some() => {
                at += 1;
                vec!["\"\"".to_owned()]
            }
            Some(index) if beside => given[index].clone(),
            Some(index) => whole(room, &given[index]),
            None => vec![token.clone()],
        };
        if !room.takes(&piece) {
            return None;
        }
        let begin = made.len();
        match joins {
            // GNU's `, ## __VA_ARGS__`: the comma goes where there are no arguments.
            true if token == VARIADIC && made.last().is_some_and(|last| last == ",") => {
                if piece.is_empty() {
                    made.pop();
                }
                made.extend(piece);
            }
            true if begin > last => {
                let mut piece = piece.into_iter();
                if let (Some(left), Some(right)) = (made.last_mut(), piece.next()) {
                    left.push_str(&right);
                }
                made.extend(piece);
                last = last.min(made.len());
                at += 1;
                continue;
            }
            _ => made.extend(piece),
        }
        last = begin.min(made.len());
        at += 1;
    }
    Some(made)
}

/// What a device reports that its compiler makes macros of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `CL_DEVICE_EXTENSIONS`, and the names of `CL_DEVICE_OPENCL_C_FEATURES`.
    pub extensions: String,
    /// `CL_DEVICE_VERSION`: 120 for OpenCL 1.2.
    pub version: u32,
    /// The language where no option names it.
    pub language: u32,
    pub has_images: bool,
    pub is_little_endian: bool,
    pub is_embedded: bool,
}

/// What drivers of NVIDIA, AMD and Intel and PoCL report between them.
const COMMON: &str = "cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_depth_images \
    cl_khr_fp16 cl_khr_fp64 cl_khr_global_int32_base_atomics \
    cl_khr_global_int32_extended_atomics cl_khr_int64_base_atomics \
    cl_khr_int64_extended_atomics cl_khr_local_int32_base_atomics \
    cl_khr_local_int32_extended_atomics cl_khr_mipmap_image cl_khr_spir cl_khr_subgroups \
    __opencl_c_3d_image_writes __opencl_c_atomic_order_acq_rel \
    __opencl_c_atomic_order_seq_cst __opencl_c_atomic_scope_device __opencl_c_fp64 \
    __opencl_c_generic_address_space __opencl_c_images __opencl_c_int64 \
    __opencl_c_program_scope_global_variables __opencl_c_read_write_images \
    __opencl_c_subgroups __opencl_c_work_group_collective_functions";

/// Macros with the same value everywhere.
const ALWAYS: [(&str, &str); 18] = [
    ("CL_VERSION_1_0", "100"),
    ("CL_VERSION_1_1", "110"),
    ("CL_VERSION_1_2", "120"),
    ("CL_VERSION_2_0", "200"),
    ("CL_VERSION_3_0", "300"),
    ("CHAR_BIT", "8"),
    ("CHAR_MAX", "127"),
    ("SCHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MAX", "2147483647"),
    ("UINT_MAX", "0xffffffff"),
    ("LONG_MAX", "0x7fffffffffffffffL"),
    ("INT_MIN", "(-2147483647-1)"),
    ("LONG_MIN", "(-0x7fffffffffffffffL-1)"),
    ("SHRT_MIN", "(-32768)"),
    ("SCHAR_MIN", "(-128)"),
];

/// Names of other compilers' macros, which those of OpenCL C do not define.
const NEVER: [&str; 6] = [
    "__cplusplus",
    "__CUDACC__",
    "__CUDA_ARCH__",
    "__HIPCC__",
    "__METAL_VERSION__",
    "__OPENCL_CPP_VERSION__",
];

/// The macro of the language's version.
const LANGUAGE: &str = "__OPENCL_C_VERSION__";

impl Target {
    /// What common devices have between them, where the device is not known: OpenCL 3.0, and
    /// OpenCL C 1.2 unless an option says otherwise.
    pub fn common() -> Self {
        Self {
            extensions: COMMON.to_owned(),
            version: 300,
            language: 120,
            has_images: true,
            is_little_endian: true,
            is_embedded: false,
        }
    }

    /// The macros of a source that is compiled with others, which are defined after them.
    pub fn macros(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = ALWAYS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let language = given.get(LANGUAGE).and_then(|said| said.parse().ok());
        let language: u32 = language.unwrap_or(self.language);
        let mut define = |name: &str, value: u32| all.insert(name.to_owned(), value.to_string());
        define("__OPENCL_VERSION__", self.version);
        define(LANGUAGE, language);
        let is_there = |name: &&str| language >= 300 || !name.starts_with("__opencl_c_");
        for name in self.extensions.split_whitespace().filter(is_there) {
            define(name, 1);
        }
        for (name, is_defined) in [
            ("__ENDIAN_LITTLE__", self.is_little_endian),
            ("__IMAGE_SUPPORT__", self.has_images),
            ("__EMBEDDED_PROFILE__", self.is_embedded),
            // Every device of today has it; it is defined in all versions of the language.
            ("__opencl_c_int64", !self.is_embedded),
        ] {
            if is_defined {
                define(name, 1);
            }
        }
        all.extend(given.clone());
        all
    }
}

/// Whether a compiler may define a name that its device reports nothing of.
pub(super) fn is_compilers(name: &str) -> bool {
    let reserved = name.starts_with("__") || name.starts_with("FP_FAST_");
    reserved && !name.starts_with("__opencl_c_") && !NEVER.contains(&name) && !is_reported(name)
}

/// Names of which a device reports whether they are defined.
fn is_reported(name: &str) -> bool {
    [
        "__OPENCL_VERSION__",
        LANGUAGE,
        "__ENDIAN_LITTLE__",
        "__IMAGE_SUPPORT__",
        "__EMBEDDED_PROFILE__",
        "__FAST_RELAXED_MATH__",
    ]
    .contains(&name)
}

/// The macros of compiler options: `-DA=1 -D B`, and what others define.
pub fn macros_of(options: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        if word == "-cl-fast-relaxed-math" {
            all.insert("__FAST_RELAXED_MATH__".to_owned(), "1".to_owned());
        } else if let Some(version) = word.strip_prefix("-cl-std=CL") {
            let digits: String = version.chars().filter(char::is_ascii_digit).collect();
            all.insert(LANGUAGE.to_owned(), format!("{digits}0"));
        } else if let Some(define) = word.strip_prefix("-D") {
            let define = match define {
                "" => words.next().unwrap_or_default(),
                define => define,
            };
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::preprocess::preprocess;

    /// The tokens of a text, and whether a macro stayed.
    fn read(text: &str) -> (String, bool) {
        let seen = preprocess(text, &BTreeMap::new());
        (seen.tokens.join(" "), seen.has_macros)
    }

    #[test]
    fn tokens_are_joined_as_compilers_do() {
        for (text, expected) in [
            ("#define K(t) add_##t\nK(float)", "add_float"),
            (
                "#define J(a,b) a##b\n#define X(a,b) J(a,b)\n#define T int\nX(k_,T) J(k_,T)",
                "k_int k_T",
            ),
            ("#define J(a,b,c) a##_##b##_##c\nJ(k,2,x)", "k_2_x"),
            ("#define J(a,b) a##b c\nJ(,x) J(x,) J(,)", "x c x c c"),
            ("#define N k##1\nN", "k1"),
            ("#define S(x) f(#x, x)\nS(a b)", "f ( \"\" , a b )"),
            (
                "#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, (2, 3)) V(g)",
                "g ( 1 , ( 2 , 3 ) ) g ( )",
            ),
            (
                "#define P(f, ...) printf(f, ##__VA_ARGS__)\nP(a) P(a, 1, 2)",
                "printf ( a ) printf ( a , 1 , 2 )",
            ),
            ("#define E() 7\nE() E", "7 E"),
        ] {
            let (tokens, stayed) = read(text);
            assert_eq!(tokens, expected, "{text}");
            // The name of a macro with arguments stays where none are given.
            assert_eq!(stayed, expected.ends_with(" E"), "{text}");
        }
    }

    /// A kernel behind macros that grow without bounds: by doubling what they are given, their
    /// text or a name, by making nothing at all, or by calls within calls.
    #[test]
    fn macros_that_grow_without_bounds_stay() {
        let doubling = |by: &str| -> String {
            (1..40)
                .map(|i| {
                    format!(
                        "#define D{i}(x) {}\n",
                        by.replace('$', &format!("D{}", i - 1))
                    )
                })
                .collect()
        };
        let given = format!("#define D0(x) x x\n{}", doubling("$(x) $(x)"));
        let shallow: String = (1..9)
            .map(|i| {
                format!(
                    "#define D{i}(x) {}\n",
                    format!("D{}(x x x x x x x x) ", i - 1).repeat(8)
                )
            })
            .collect();
        let plain: String = (1..15)
            .map(|i| format!("#define P{i} {}\n", format!("P{} ", i - 1).repeat(50)))
            .collect();
        let nothing: String = (1..15)
            .map(|i| format!("#define E{i}(x) {}\n", format!("E{}(x) ", i - 1).repeat(50)))
            .collect();
        let joined: String = (1..15)
            .map(|i| format!("#define J{i}(x) J{}(x##x##x##x##x##x##x##x)\n", i - 1))
            .collect();
        let long = "x ".repeat(100_000);
        for text in [
            format!("{given}D5(int q;) D39(int q;)"),
            format!("#define D0(x) x x\n{shallow}D8(int q;)"),
            format!("#define P0 int q;\n{plain}P14"),
            format!("#define E0(x)\n{nothing}E14(a)"),
            format!("#define J0(x) int x;\n{joined}J14(aaaaaaaa)"),
            format!("#define L(x) {long}\nL({long})"),
            format!(
                "#define F(x) x\n{}1{};",
                "F(".repeat(20_000),
                ")".repeat(20_000)
            ),
            format!("#define F(x) x\nint a = 1; {}", "F(".repeat(20_000)),
        ] {
            let begin: String = text.chars().take(60).collect();
            let kernel = "\nkernel void k(global int *p) { p[0] = 1; }";
            let seen = preprocess(&(text + kernel), &BTreeMap::new());
            let bytes: usize = seen.tokens.iter().map(String::len).sum();
            assert!(seen.tokens.len() < 2_000_000 && bytes < 40 << 20, "{begin}");
            assert!(seen.tokens.iter().any(|token| token == "kernel"), "{begin}");
        }
    }

    #[test]
    fn a_call_with_other_arguments_stays() {
        for text in [
            "#define F(a, b) a\nF(1)",
            "#define F() 1\nF(2)",
            "#define V(a...) a\nV(1)",
        ] {
            assert!(read(text).1, "{text}");
        }
    }
}
