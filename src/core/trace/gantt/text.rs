//! How wide texts are at most, so that none is cut off or lies over another one.
//! Which font a viewer has is not known here: the widths are those of DejaVu Sans Bold,
//! which is wider than the fonts that it stands in for.

/// Pixels that a text takes at most at this font size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// A character's width, relative to the font size.
fn em(character: char) -> f64 {
    match character {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '/' | 'I' | 'J' | 'i' | 'j' | 'l' => 0.46,
        'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '_' => 0.5,
        'a'..='l' | 'n'..='v' | 'x'..='z' | '0'..='9' => 0.72,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.11,
        character if character.is_ascii() => 0.88,
        _ => 1.11,
    }
}

/// The text, or if it is wider than `most` pixels its begin and its end.
pub fn shortened(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let parts = |kept: usize| {
        let (begin, end) = (kept.div_ceil(2), kept / 2);
        let begin = characters[..begin].iter();
        let end = characters[characters.len() - end..].iter();
        begin.chain(&['…']).chain(end).collect::<String>()
    };
    let shorter = (0..characters.len()).rev().map(parts);
    let mut fitting = shorter.filter(|text| width(text, size) <= most);
    fitting.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_begin_and_its_end() {
        assert_eq!(shortened("node 0, gpu0", 12.0, 200.0), "node 0, gpu0");
        let long = "node 0, a.very.long.host.name.example.org, opencl0.0";
        let short = shortened(long, 12.0, 200.0);
        assert!(
            short.starts_with("node 0, ") && short.ends_with("opencl0.0"),
            "{short}"
        );
        assert!(width(&short, 12.0) <= 200.0);
        assert_eq!(shortened("gpu", 12.0, 1.0), "");
    }
}
