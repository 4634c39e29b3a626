// SPDX-License-Identifier: MIT
// For flock_java.py: FileChannel's locks, one command a line on stdin.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class FlockJava {
    public static void main(String[] args) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        try (FileChannel channel = FileChannel.open(Path.of(args[0]), StandardOpenOption.READ,
                                                    StandardOpenOption.WRITE)) {
            FileLock lock = null;
            String command;
            while ((command = commands.readLine()) != null) {
                String answer;
                try {
                    switch (command) {
                        case "lock": lock = channel.lock(); break;
                        case "shared": lock = channel.lock(0, Long.MAX_VALUE, true); break;
                        case "try": lock = channel.tryLock(); break;
                        case "byte": lock = channel.tryLock(0, 1, false); break;
                        case "part": lock = channel.tryLock(0, 2, false); break;
                        case "release": lock.release(); break;
                        case "write": channel.write(ByteBuffer.wrap("from java\n".getBytes())); break;
                        case "read":
                            ByteBuffer token = ByteBuffer.allocate(64);
                            channel.read(token, 0);
                            System.out.print("token ");
                            System.out.print(new String(token.array(), 0, token.position(),
                                                        StandardCharsets.US_ASCII));
                            System.out.flush();
                            continue;
                        default: throw new IllegalArgumentException(command);
                    }
                    answer = lock == null ? "busy" : lock.isValid() ? "valid" : "free";
                } catch (IOException e) {
                    answer = "error: " + e.getMessage();
                }
                System.out.println(answer);
                System.out.flush();
            }
        }
    }
}
