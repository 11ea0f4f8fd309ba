import MediaCore

/// A part of the machine or of the connection that is examined.
package enum Check: String, CaseIterable, Sendable {
    case cameras, screen, libraries, encoder, limits, server, clock, network
}

/// Something that was found out, and what to do about it.
package struct Finding: Hashable, Sendable {
    /// How much it matters.
    package enum Level: String, Sendable {
        /// Everything is as it should be.
        case ok
        /// Worth knowing; the rest works without it.
        case note
        /// Something does not work until somebody does something about it.
        case problem
    }

    /// What was examined.
    package let check: Check
    /// How much it matters.
    package let level: Level
    /// A stable name of the kind of problem, for programs; `nil` if all is well.
    package let code: String?
    /// What was found, without a full stop.
    package let found: String
    /// What to do, without a full stop; `nil` if there is nothing to do.
    package let advice: String?

    /// Says that a part is as it should be.
    package static func ok(_ check: Check, _ found: String) -> Finding {
        Finding(check: check, level: .ok, code: nil, found: found, advice: nil)
    }

    /// Says something worth knowing.
    package static func note(_ check: Check, _ code: String, _ found: String, _ advice: String? = nil) -> Finding {
        Finding(check: check, level: .note, code: code, found: found, advice: advice)
    }

    /// Says what does not work, and what to do.
    package static func problem(_ check: Check, _ code: String, _ found: String, _ advice: String) -> Finding {
        Finding(check: check, level: .problem, code: code, found: found, advice: advice)
    }

    /// A problem if the part was asked for, else a note.
    static func problem(
        if isAsked: Bool,
        _ check: Check,
        _ code: String,
        _ found: String,
        _ advice: String
    ) -> Finding {
        isAsked ? .problem(check, code, found, advice) : .note(check, code, found, advice)
    }
}

extension Duration {
    /// The time in milliseconds, with one decimal below ten.
    var millisecondText: String {
        let tenths = wholeMicroseconds / 100
        return tenths < 100 ? "\(tenths / 10).\(tenths % 10) ms" : "\((tenths + 5) / 10) ms"
    }
}
