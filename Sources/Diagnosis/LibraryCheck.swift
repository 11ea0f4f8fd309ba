package import WebSockets

/// Says which libraries and programs there are.
package struct LibraryCheck: Sendable {
    /// What starting `room-view` brought.
    package enum Window: Hashable, Sendable {
        /// It starts, and is at this path.
        case runs(String)
        /// It is at this path, and ends with this code.
        case fails(String, code: Int32)
        case absent
    }

    /// The loaded libraries.
    package var libraries: LoadedLibraries
    /// Why the network library cannot work here; `nil` if it can.
    package var networkFailure: WebSocketError?
    /// The program that opens windows.
    package var window: Window

    /// A check with the given facts.
    package init(libraries: LoadedLibraries, networkFailure: WebSocketError?, window: Window) {
        self.libraries = libraries
        self.networkFailure = networkFailure
        self.window = window
    }

    /// Looks at this program's libraries, and starts a loop of the network library for a moment.
    package static func ofThisProgram(window: Window) -> LibraryCheck {
        var failure: WebSocketError?
        do throws(WebSocketError) {
            try WebSocketLoop(name: "doctor").shutdown()
        } catch {
            failure = error
        }
        return LibraryCheck(libraries: LoadedLibraries(), networkFailure: failure, window: window)
    }

    /// What was found.
    package func findings() -> [Finding] {
        var findings = [Finding.ok(.libraries, libraries.versions.joined(separator: ", "))]
        if let networkFailure {
            findings.append(
                .problem(
                    .libraries,
                    networkFailure.code.description,
                    "the network library does not start: \(networkFailure)",
                    "sudo apt-get install libwebsockets-evlib-ev"
                )
            )
        }
        switch window {
        case .runs(let path): findings.append(.ok(.libraries, "room-view starts (\(path))"))
        case .fails(let path, let code):
            findings.append(
                .note(
                    .libraries,
                    "windowFails",
                    "\(path) does not start (code \(code)), so there is no window for view",
                    "see what it lacks: ldd \(path) | grep 'not found'; SDL is in libsdl2-2.0-0"
                )
            )
        case .absent:
            findings.append(
                .note(
                    .libraries,
                    "noWindow",
                    "no room-view beside room-client or in PATH",
                    "only view needs it: copy it from where it was built"
                )
            )
        }
        return findings
    }
}
