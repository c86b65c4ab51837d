//! From tokens to an expression.

use super::lex::{Token, tokens};
use super::{Choice, ExpressionError, Function, MAX_BYTES, MAX_DEPTH, Node, Operator, SyntaxError};

type Parsed<T> = Result<T, ExpressionError>;

/// A node and the number of nodes on its longest path.
type Deep = (Node, usize);

/// Parses a text.
pub fn parse(text: &str) -> Parsed<Node> {
    if text.len() > MAX_BYTES {
        return Err(ExpressionError { column: 1, cause: SyntaxError::Length });
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
    let (node, _) = parser.choice()?;
    match parser.next() {
        (_, Token::End) => Ok(node),
        (column, other) => Err(ExpressionError { column, cause: SyntaxError::Operator(other.text()) }),
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<(usize, Token)>>,
    /// Number of open parentheses, brackets, signs and branches.
    depth: usize,
}

impl Operator {
    /// Returns how strongly it binds.
    const fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual | Self::Equal | Self::Unequal => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
        }
    }
}

impl Function {
    const ALL: [(&'static str, Self); 5] = [
        ("min", Self::Min),
        ("max", Self::Max),
        ("d_ratio", Self::Ratio),
        ("has_event", Self::HasEvent),
        ("source_count", Self::SourceCount),
    ];

    /// Checks the arguments.
    fn check(self, name: &'static str, arguments: &[Node]) -> Result<(), SyntaxError> {
        let (expected, is_valid) = match (self, arguments) {
            (Self::Min | Self::Max, _) => ("two or more values", arguments.len() >= 2),
            (Self::Ratio, _) => ("two values", arguments.len() == 2),
            (Self::HasEvent | Self::SourceCount, _) => ("the name of an event", matches!(arguments, [Node::Name(_)])),
        };
        let error = SyntaxError::Arguments { function: name, expected, found: arguments.len() };
        if is_valid { Ok(()) } else { Err(error) }
    }
}

impl Parser {
    /// Takes a token. The last is returned again and again.
    fn next(&mut self) -> (usize, Token) {
        match self.tokens.next_if(|(_, token)| *token != Token::End) {
            Some(token) => token,
            None => self.tokens.peek().cloned().unwrap_or((1, Token::End)),
        }
    }

    /// Takes the token if it is this one.
    fn accepts(&mut self, wanted: &Token) -> bool {
        self.tokens.next_if(|(_, token)| token == wanted).is_some()
    }

    /// Takes the token that ends or continues what another began.
    fn expect(&mut self, wanted: &Token, expected: &'static str, opening: &'static str, start: usize) -> Parsed<()> {
        match self.next() {
            (_, token) if token == *wanted => Ok(()),
            (column, other) => {
                let found = other.text();
                Err(ExpressionError {
                    column,
                    cause: SyntaxError::Unclosed { expected, opening, column: start, found },
                })
            }
        }
    }

    /// Parses a part that is nested in another.
    fn nested<T>(&mut self, column: usize, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError { column, cause: SyntaxError::Depth });
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses `X if C else Y`, or an expression without `if`.
    fn choice(&mut self) -> Parsed<Deep> {
        let then = self.binary(1)?;
        let Some((column, _)) = self.tokens.next_if(|(_, token)| *token == Token::If) else { return Ok(then) };
        let condition = self.binary(1)?;
        self.expect(&Token::Else, "else", "if", column)?;
        let otherwise = self.nested(column, Self::choice)?;
        let depth = then.1.max(condition.1).max(otherwise.1);
        let choice = Choice { then: then.0, condition: condition.0, otherwise: otherwise.0 };
        deeper(Node::If(Box::new(choice)), depth, column)
    }

    /// Parses operators of at least this strength. All are grouped from the left.
    fn binary(&mut self, strength: u8) -> Parsed<Deep> {
        let mut left = self.operand()?;
        loop {
            let next = self.tokens.next_if(|(_, token)| match token {
                Token::Operator(operator) => operator.strength() >= strength,
                _ => false,
            });
            let Some((column, Token::Operator(operator))) = next else { return Ok(left) };
            let right = self.binary(operator.strength() + 1)?;
            let depth = left.1.max(right.1);
            left = deeper(Node::Binary { operator, column, sides: Box::new([left.0, right.0]) }, depth, column)?;
        }
    }

    /// Parses a number, a name, a call, a sign with its operand, or something in parentheses.
    fn operand(&mut self) -> Parsed<Deep> {
        match self.next() {
            (_, Token::Number(number)) => Ok((Node::Number(number), 1)),
            (column, Token::Name(name)) if self.accepts(&Token::Open) => self.call(&name, column),
            (column, Token::Name(name)) if name.starts_with('.') => {
                Err(ExpressionError { column, cause: SyntaxError::Operand(name) })
            }
            (_, Token::Name(name)) => self.indexed(name),
            (column, Token::Operator(Operator::Subtract)) => {
                let (node, depth) = self.nested(column, Self::operand)?;
                deeper(Node::Negation(Box::new(node)), depth, column)
            }
            (column, Token::Operator(Operator::Add)) => self.nested(column, Self::operand),
            (column, Token::Open) => {
                let inner = self.nested(column, Self::choice)?;
                self.expect(&Token::Close, ")", "(", column)?;
                Ok(inner)
            }
            (column, other) => Err(ExpressionError { column, cause: SyntaxError::Operand(other.text()) }),
        }
    }

    /// Parses the arguments of a function, behind the parenthesis.
    fn call(&mut self, name: &str, column: usize) -> Parsed<Deep> {
        let Some((name, function)) = Function::ALL.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
        else {
            return Err(ExpressionError { column, cause: SyntaxError::Function(name.to_owned()) });
        };
        let (mut arguments, mut depth) = (Vec::new(), 0);
        if !self.accepts(&Token::Close) {
            loop {
                let (argument, inner) = self.nested(column, Self::choice)?;
                arguments.push(argument);
                depth = depth.max(inner);
                if !self.accepts(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::Close, ")", "(", column + name.len())?;
        }
        function.check(name, &arguments).map_err(|cause| ExpressionError { column, cause })?;
        deeper(Node::Call { function, column, arguments }, depth, column)
    }

    /// Parses the indexes behind a name.
    fn indexed(&mut self, name: String) -> Parsed<Deep> {
        let mut node = (Node::Name(name), 1);
        while let Some((column, _)) = self.tokens.next_if(|(_, token)| *token == Token::OpenIndex) {
            let (index, inner) = self.nested(column, Self::choice)?;
            self.expect(&Token::CloseIndex, "]", "[", column)?;
            let rest =
                match self.tokens.next_if(|(_, token)| matches!(token, Token::Name(name) if name.starts_with('.'))) {
                    Some((_, Token::Name(rest))) => rest,
                    _ => String::new(),
                };
            let indexed = Node::Index { name: Box::new(node.0), index: Box::new(index), rest, column };
            node = deeper(indexed, node.1.max(inner), column)?;
        }
        Ok(node)
    }
}

/// Adds the depth of a node around others of a depth.
fn deeper(node: Node, depth: usize, column: usize) -> Parsed<Deep> {
    if depth < MAX_DEPTH { Ok((node, depth + 1)) } else { Err(ExpressionError { column, cause: SyntaxError::Depth }) }
}
