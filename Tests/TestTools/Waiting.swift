import MediaCore
package import Testing
package import Threading

/// A test that cannot go on, and why.
package struct TestFailure: Error, CustomStringConvertible {
    /// What is missing.
    package let description: String

    /// A failure with a sentence.
    package init(_ description: String) {
        self.description = description
    }
}

/// The longest time that a condition may take to become true on a busy machine; no test depends on a shorter time.
package let patience: Duration = .seconds(30)

/// Waits until `condition` holds.
///
/// It checks every few milliseconds instead of blocking, because tests run on the few threads of the concurrency pool.
///
/// - Throws: `TestFailure` with `what` if it does not within `patience`.
package func eventually(
    _ what: @autoclosure () -> String = "it comes about",
    within patience: Duration = patience,
    _ condition: () async throws -> Bool
) async throws {
    _ = try await eventual(what(), within: patience) { try await condition() ? true : nil }
}

/// Waits until `value` is there.
///
/// - Throws: `TestFailure` with `what` if it is not within `patience`.
package func eventual<Value>(
    _ what: @autoclosure () -> String,
    within patience: Duration = patience,
    _ value: () async throws -> Value?
) async throws -> Value {
    let deadline = MonotonicClock.now + patience
    while MonotonicClock.now < deadline {
        if let value = try await value() { return value }
        try await Task.sleep(for: .milliseconds(3))
    }
    if let value = try await value() { return value }
    throw TestFailure("in vain for \(patience.seconds) s: \(what())")
}

extension Monitor {
    /// Waits, as `wait` does, but not longer than `patience`: a test that waited for ever would report nothing.
    ///
    /// It blocks its thread. A wait in vain is an issue of the test.
    package func waitPatiently<Result>(
        sourceLocation: SourceLocation = #_sourceLocation,
        for body: (inout sending State) -> sending Result?
    ) -> sending Result? {
        let result = wait(until: MonotonicClock.now + patience, for: body)
        if result == nil { Issue.record("waited in vain", sourceLocation: sourceLocation) }
        return result
    }
}
