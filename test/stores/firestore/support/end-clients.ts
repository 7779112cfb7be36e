import { afterAll } from 'vitest';
import { endClients } from './database.ts';

// Runs before each test file, whose clients end with it.
afterAll(endClients);
