//! From text to tokens.

use super::{ExpressionError, Operator, SyntaxError};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(f64),
    Name(String),
    Operator(Operator),
    If,
    Else,
    Open,
    Close,
    OpenIndex,
    CloseIndex,
    Comma,
    End,
}

impl Token {
    /// Returns the token as a user knows it.
    pub fn text(&self) -> String {
        let text = match self {
            Self::Number(number) => return number.to_string(),
            Self::Name(name) => return name.chars().take(60).collect(),
            Self::Operator(operator) => operator.text(),
            Self::If => "if",
            Self::Else => "else",
            Self::Open => "(",
            Self::Close => ")",
            Self::OpenIndex => "[",
            Self::CloseIndex => "]",
            Self::Comma => ",",
            Self::End => return "the end".to_owned(),
        };
        format!("'{text}'")
    }
}

impl Operator {
    /// Returns the usual spelling.
    const fn text(self) -> &'static str {
        match self {
            Self::Or => "|",
            Self::And => "&",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// Symbols, longer ones before their beginnings.
const SYMBOLS: [(&str, Token); 20] = [
    ("||", Token::Operator(Operator::Or)),
    ("|", Token::Operator(Operator::Or)),
    ("&&", Token::Operator(Operator::And)),
    ("&", Token::Operator(Operator::And)),
    ("<=", Token::Operator(Operator::LessOrEqual)),
    ("<", Token::Operator(Operator::Less)),
    (">=", Token::Operator(Operator::GreaterOrEqual)),
    (">", Token::Operator(Operator::Greater)),
    ("==", Token::Operator(Operator::Equal)),
    ("!=", Token::Operator(Operator::Unequal)),
    ("+", Token::Operator(Operator::Add)),
    ("-", Token::Operator(Operator::Subtract)),
    ("*", Token::Operator(Operator::Multiply)),
    ("/", Token::Operator(Operator::Divide)),
    ("%", Token::Operator(Operator::Remainder)),
    ("(", Token::Open),
    (")", Token::Close),
    ("[", Token::OpenIndex),
    ("]", Token::CloseIndex),
    (",", Token::Comma),
];

/// Splits a text into tokens, each with its column. The last is [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let mut tokens = Vec::new();
    let (mut rest, mut column) = (text, 1);
    loop {
        let trimmed = rest.trim_start();
        column += rest.chars().count() - trimmed.chars().count();
        rest = trimmed;
        let Some(first) = rest.chars().next() else { break };
        let (token, length) = if is_number(rest) {
            number(rest).map_err(|cause| ExpressionError { column, cause })?
        } else if is_name(first) || matches!(first, '#' | '$' | '\\') {
            name(rest).map_err(|(offset, cause)| ExpressionError { column: column + offset, cause })?
        } else {
            let symbol = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol));
            let (symbol, token) = symbol.ok_or(ExpressionError { column, cause: SyntaxError::Character(first) })?;
            (token.clone(), symbol.len())
        };
        tokens.push((column, token));
        let (part, others) = rest.split_at_checked(length).unwrap_or((rest, ""));
        column += part.chars().count();
        rest = others;
    }
    tokens.push((column, Token::End));
    Ok(tokens)
}

/// Returns whether a name has the character. Modifiers follow a colon, and Linux writes `cpu_core@EVENT@`.
const fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | ':' | '@')
}

/// Returns whether a text begins with a number: a digit, or a point and a digit.
fn is_number(text: &str) -> bool {
    text.strip_prefix('.').unwrap_or(text).starts_with(|character: char| character.is_ascii_digit())
}

/// Reads a number at the beginning of a text, and returns its length.
fn number(text: &str) -> Result<(Token, usize), SyntaxError> {
    let mut before = ' ';
    let length = text
        .find(|character: char| {
            let is_sign = matches!(character, '+' | '-') && matches!(before, 'e' | 'E');
            before = character;
            !(is_name(character) || is_sign)
        })
        .unwrap_or(text.len());
    let text = text.get(..length).unwrap_or_default();
    let is_plain =
        text.chars().all(|character| character.is_ascii_digit() || matches!(character, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse::<f64>() {
        Ok(number) if is_plain && number.is_finite() => Ok((Token::Number(number), length)),
        _ => Err(SyntaxError::Number(text.chars().take(60).collect())),
    }
}

/// Reads a name or a word at the beginning of a text, and returns its length. A backslash takes the character after it
/// into the name.
fn name(text: &str) -> Result<(Token, usize), (usize, SyntaxError)> {
    let mut name = String::new();
    let mut length = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) =
        characters.next_if(|next| is_name(*next) || *next == '\\' || matches!((next, length), ('#' | '$', 0)))
    {
        length += character.len_utf8();
        if character != '\\' {
            name.push(character);
            continue;
        }
        match characters.next() {
            Some(escaped @ (',' | '-' | '=' | '\\')) => {
                length += escaped.len_utf8();
                name.push(escaped);
            }
            other => return Err((length, SyntaxError::Character(other.unwrap_or('\\')))),
        }
    }
    let token = match name.as_str() {
        "if" => Token::If,
        "else" => Token::Else,
        "or" => Token::Operator(Operator::Or),
        "and" => Token::Operator(Operator::And),
        "#" | "$" => return Err((0, SyntaxError::Operand(format!("'{name}'")))),
        _ => Token::Name(name),
    };
    Ok((token, length))
}
