import CTimex
import MediaCore
package import RoomProtocol

/// Says how well this machine's clocks are known.
package struct ClockCheck: Sendable {
    /// The estimate of the server's clock; `nil` without a server.
    package var estimate: ClockEstimate?
    /// Whether the clock of the wall is set by a time server; `nil` if the kernel does not tell.
    package var isSynchronized: Bool?

    /// An age with a larger error says little about frames of 33 ms.
    private static let tolerableError = Duration.milliseconds(50)

    /// A check with the given facts.
    package init(estimate: ClockEstimate?, isSynchronized: Bool?) {
        self.estimate = estimate
        self.isSynchronized = isSynchronized
    }

    /// Whether the kernel says that something sets the clock of the wall; `nil` if it refuses the question, as in some
    /// containers.
    package static var isWallClockSynchronized: Bool? {
        var state = timex()
        let answer = unsafe adjtimex(&state)
        return answer < 0 ? nil : answer != TIME_ERROR && state.status & STA_UNSYNC == 0
    }

    /// What was found.
    package func findings() -> [Finding] {
        var findings: [Finding] = []
        if let estimate {
            switch estimate.basis {
            case .sameHost:
                findings.append(.ok(.clock, "the server reads the same clock: ages of frames are exact"))
            case .estimated where estimate.errorBound > Self.tolerableError:
                findings.append(
                    .note(
                        .clock,
                        "uncertain",
                        "the server's clock is known to \(estimate.errorBound.millisecondText), half of the round trip",
                        "take the ages of frames for no better than that"
                    )
                )
            case .estimated:
                let bound = estimate.errorBound.millisecondText
                findings.append(.ok(.clock, "the server's clock is known to \(bound): ages of frames have that error"))
            }
        }
        switch isSynchronized {
        case true?: findings.append(.ok(.clock, "the wall clock is synchronized"))
        case nil:
            let words = "the kernel does not tell whether anything synchronizes the wall clock"
            findings.append(.note(.clock, "unknown", words, "outside the container, ask: timedatectl"))
        case false?:
            findings.append(
                .note(
                    .clock,
                    "unsynchronized",
                    "nothing synchronizes the wall clock: times in logs may be wrong, ages of frames are not",
                    "sudo timedatectl set-ntp true"
                )
            )
        }
        return findings
    }
}
