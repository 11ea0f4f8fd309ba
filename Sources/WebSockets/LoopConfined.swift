/// A value that lives on a loop's thread: made, used and given up there.
///
/// What is not `Sendable` can so be reached by closures that are, as long as they run on the loop.
@usableFromInline package final class LoopConfined<Value>: @unchecked Sendable {
    // `@unchecked Sendable`: `value` is reached on the loop's thread only, which is checked.

    private let loop: WebSocketLoop
    private let make: @Sendable () -> Value
    @usableFromInline var made: Value?

    /// A value that `make` makes on the thread of `loop`, when it is first asked for.
    package init(on loop: WebSocketLoop, make: @escaping @Sendable () -> Value) {
        self.loop = loop
        self.make = make
    }

    /// The value; only on the loop's thread.
    @inlinable package var value: Value {
        checkThread()
        return made ?? makeValue()
    }

    @usableFromInline func checkThread() {
        precondition(loop.isCurrent, "a value of the loop's thread was asked for on another one")
    }

    @usableFromInline func makeValue() -> Value {
        let value = make()
        made = value
        return value
    }
}
