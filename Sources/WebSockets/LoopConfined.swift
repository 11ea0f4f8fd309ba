/// A value that is made, used and released on a loop's thread.
///
/// It lets `Sendable` closures use a value that is not `Sendable`, as long as they run on the loop.
@usableFromInline package final class LoopConfined<Value>: @unchecked Sendable {
    // `@unchecked Sendable`: `value` is only used on the loop's thread, which is checked.

    package let loop: WebSocketLoop
    private let make: @Sendable () -> Value
    @usableFromInline var made: Value?

    /// Creates a value with `make`, on the thread of `loop`, when it is first used.
    package init(on loop: WebSocketLoop, make: @escaping @Sendable () -> Value) {
        self.loop = loop
        self.make = make
    }

    /// The value; use it only on the loop's thread.
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
